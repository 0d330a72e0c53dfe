package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"oncegate/e2e/harness"
)

// TestOnceInEachStore is TestOnce with two replicas on each store that is a
// server: every event twenty times in parallel, later shuffled, and once more
// after both were started anew, so that nothing but the store can know.
func TestOnceInEachStore(t *testing.T) {
	const events, copies = 100, 20
	for name, store := range map[string]func(*testing.T) string{
		"PostgreSQL": func(t *testing.T) string { p := servers.Postgres(t); return p.URL(p.Database(t)) },
		"MariaDB":    func(t *testing.T) string { m := servers.MariaDB(t); return m.URL(m.Database(t)) },
		"Redis":      func(t *testing.T) string { return servers.Redis(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			shop := harness.NewShop(t, harness.ShopOptions{})
			c := harness.Config{
				Upstream: shop.URL, Routes: harness.StripeRoute,
				Top: fmt.Sprintf("namespace: shop\nstore: {url: %q}\n", store(t)),
			}
			gates := []*harness.Gate{binary.Serve(t, c), binary.Serve(t, c)}
			send := func(work []harness.Event) []harness.Answer {
				return whileSending(t, work, gates, func(context.Context) {})
			}
			answers := make(firstAnswers)
			work := deliveries(events, copies)
			answers.check(t, work, send(work))
			shopRanEachOnce(t, shop, events)

			shuffled := deliveries(events, 3)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			answers.check(t, shuffled, send(shuffled))

			for _, gate := range gates {
				gate.Stop(t)
				gate.Start(t)
			}
			answers.check(t, shuffled, send(shuffled))
			var replays float64
			for _, gate := range gates {
				replays += gate.Metric(t, "oncegate_deliveries_total", "route=stripe", "result=replay")
			}
			if replays != float64(len(shuffled)) {
				t.Errorf("%v deliveries were replays after the restart, want %d", replays, len(shuffled))
			}
			shopRanEachOnce(t, shop, events)
		})
	}
}
