package e2e

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"oncegate/e2e/faults"
	"oncegate/e2e/harness"
)

// lastInch is a shop with the last inch (docs/last-inch.md), a gate before it
// that asks the shop's own table, and a wire between them that can be cut.
type lastInch struct {
	shop *harness.Shop
	wire *faults.Wire
	gate *harness.Gate
}

// hooks are the three ways to write it, by the path that they serve.
var hooks = map[string]string{"Laravel": "/hooks/paid", "a queued job": "/hooks/queued", "plain PDO": "/pdo.php"}

func newLastInch(t *testing.T, db harness.Database, concat, onUnknown string) *lastInch {
	t.Helper()
	l := &lastInch{shop: harness.NewShop(t, harness.ShopOptions{Database: db, Overlay: "lastinch"})}
	l.wire = faults.NewWire(t, "127.0.0.1", l.shop.Addr, 1)
	routes := ""
	for name, path := range map[string]string{"paid": hooks["Laravel"], "queued": hooks["a queued job"], "pdo": hooks["plain PDO"]} {
		routes += fmt.Sprintf(`
  %s:
    path: %s
    provider: stripe
    secrets: %s
    on_unknown: %s
`, name, path, harness.Secret, onUnknown)
		if onUnknown == "witness" {
			routes += fmt.Sprintf(`    witness_db: {url: %q}
    witness:
      - with: {event: {json: /id}}
        sql: SELECT 1 FROM oncegate_events WHERE event = %s
`, l.shop.DatabaseURL, fmt.Sprintf(concat, "'"+name+":'"))
		}
	}
	l.gate = binary.Serve(t, harness.Config{
		Upstream: "http://" + l.wire.Addr, Routes: routes, Top: "lease: 2s\napp_limit: 5s\n",
	})
	return l
}

func (l *lastInch) deliver(t *testing.T, path string, e harness.Event) harness.Answer {
	t.Helper()
	sender := harness.NewSender()
	defer sender.Close()
	return sender.Send(t.Context(), l.gate.URL+path, e.Delivery())
}

// effects counts what the hook's handlers have done.
func (l *lastInch) effects(t *testing.T, hook string) int {
	t.Helper()
	if hook == "a queued job" {
		l.shop.Artisan(t, "queue:work", "--stop-when-empty")
		return l.shop.Enrolments(t)
	}
	return l.shop.Payments(t)
}

// TestLastInch loses the answer after the effect, and the request before it. In
// both cases the app's own table decides.
func TestLastInch(t *testing.T) {
	for kind, of := range map[string]struct {
		db     func(t *testing.T) harness.Database
		concat string
	}{
		"SQLite":     {func(*testing.T) harness.Database { return harness.Database{} }, "%s || :event"},
		"PostgreSQL": {func(t *testing.T) harness.Database { return harness.OnPostgres(t, servers.Postgres(t)) }, "%s || :event"},
		"MariaDB":    {func(t *testing.T) harness.Database { return harness.OnMariaDB(t, servers.MariaDB(t)) }, "CONCAT(%s, :event)"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newLastInch(t, of.db(t), of.concat, "witness")
			n := 0
			for hook, path := range hooks {
				t.Run(hook, func(t *testing.T) {
					before, runs := l.effects(t, hook), l.shop.Entries(t)
					lost, never := harness.NewEvent(n), harness.NewEvent(n+1)
					n += 2

					l.wire.Set(faults.Mode{After: 1})
					if a := l.deliver(t, path, lost); a.Status != 502 || a.Result() != "unknown" {
						t.Fatalf("with the answer lost: %v", a)
					}
					l.wire.Set(faults.Mode{Before: 1})
					if a := l.deliver(t, path, never); a.Status != 502 || a.Result() != "unknown" {
						t.Fatalf("with the request lost: %v", a)
					}
					l.wire.Set(faults.Mode{})

					// The table has it: that counts at once.
					accepted(t, l.deliver(t, path, lost), "waited", "replay")
					if got := l.shop.Entries(t) - runs; got != 1 {
						t.Errorf("the handler ran %d times for the event whose answer was lost", got)
					}
					// The table does not have it: that counts when the app can't be running.
					waitFor(t, "the event that never arrived to run", func() bool { return l.deliver(t, path, never).OK() })
					if got := l.shop.Entries(t) - runs; got != 2 {
						t.Errorf("the handler ran %d times for two events", got)
					}
					if got := l.effects(t, hook) - before; got != 2 {
						t.Errorf("%d effects of two events", got)
					}
				})
			}
		})
	}
}

// TestLastInchAlone shows what the table is worth without a witness: a second
// run finds that the effect exists, and so does a job that a queue delivers twice.
func TestLastInchAlone(t *testing.T) {
	t.Parallel()
	l := newLastInch(t, harness.Database{}, "", "retry")
	n := 0
	for hook, path := range hooks {
		t.Run(hook, func(t *testing.T) {
			before, runs := l.effects(t, hook), l.shop.Entries(t)
			event := harness.NewEvent(n)
			n++
			l.wire.Set(faults.Mode{After: 1})
			if a := l.deliver(t, path, event); a.Status != 502 {
				t.Fatalf("with the answer lost: %v", a)
			}
			l.wire.Set(faults.Mode{})
			if hook == "a queued job" {
				deliverJobsTwice(t, l.shop)
			}
			end := time.Now().Add(30 * time.Second)
			a := l.deliver(t, path, event)
			for !a.OK() && time.Now().Before(end) {
				a = l.deliver(t, path, event)
			}
			accepted(t, a, "fresh")
			if got := l.shop.Entries(t) - runs; got != 2 {
				t.Errorf("the handler ran %d times, want 2", got)
			}
			if got := l.effects(t, hook) - before; got != 1 {
				t.Errorf("%d effects of one event", got)
			}
		})
	}
}

// deliverJobsTwice puts each job into the queue's table once more.
func deliverJobsTwice(t *testing.T, shop *harness.Shop) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(shop.DatabaseURL, "sqlite://")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const columns = "queue, payload, attempts, reserved_at, available_at, created_at"
	if _, err := db.Exec("INSERT INTO jobs (" + columns + ") SELECT " + columns + " FROM jobs"); err != nil {
		t.Fatal(err)
	}
}
