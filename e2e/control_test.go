package e2e

import (
	"testing"

	"oncegate/e2e/harness"
)

// TestControl shows that the shop needs oncegate: without it every duplicate
// counts. If this test failed, the others would prove nothing.
func TestControl(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) harness.Database{
		"SQLite":     func(*testing.T) harness.Database { return harness.Database{} },
		"PostgreSQL": func(t *testing.T) harness.Database { return harness.OnPostgres(t, servers.Postgres(t)) },
		"MariaDB":    func(t *testing.T) harness.Database { return harness.OnMariaDB(t, servers.MariaDB(t)) },
	} {
		t.Run("shop on "+name, func(t *testing.T) { control(t, database(t)) })
	}
}

func control(t *testing.T, database harness.Database) {
	const events, copies = 5, 20
	shop := harness.NewShop(t, harness.ShopOptions{Database: database})
	sender := harness.NewSender()
	defer sender.Close()

	for _, a := range sender.SendAll(t.Context(), shop.URL+harness.WebhookPath, deliveries(events, copies), 32) {
		if !a.OK() {
			t.Fatalf("the shop on its own doesn't take events: %v", a)
		}
	}
	if got, want := shop.Payments(t), events*copies; got != want {
		t.Errorf("without oncegate %d events made %d payments, want %d", events, got, want)
	}
	if got, want := shop.Enrolments(t), events*copies; got != want {
		t.Errorf("without oncegate %d events made %d enrolments, want %d", events, got, want)
	}
}

// deliveries lists each of the first n events copies times, copies of one
// event side by side, so that they are sent in parallel.
func deliveries(n, copies int) []harness.Event {
	var all []harness.Event
	for i := range n {
		for range copies {
			all = append(all, harness.NewEvent(i))
		}
	}
	return all
}
