package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// replicas are two gates before one shop, with their claims in a PostgreSQL of
// their own that a test may stop.
type replicas struct {
	store *testenv.PostgresServer
	shop  *harness.Shop
	a, b  *harness.Gate
}

func newReplicas(t *testing.T) *replicas {
	t.Helper()
	r := &replicas{
		store: testenv.Postgres(t),
		shop:  harness.NewShop(t, harness.ShopOptions{Database: harness.OnPostgres(t, servers.Postgres(t))}),
	}
	c := harness.Config{
		Upstream: r.shop.URL, Routes: harness.StripeRoute,
		Top: fmt.Sprintf("namespace: shop\nstore: {url: %q}\nlease: 2s\napp_limit: 5s\n", r.store.URL("postgres")),
	}
	r.a, r.b = binary.Serve(t, c), binary.Serve(t, c)
	return r
}

func (r *replicas) gates() []*harness.Gate { return []*harness.Gate{r.a, r.b} }

// secondRuns adds up what both count.
func (r *replicas) secondRuns(t *testing.T) float64 {
	t.Helper()
	return r.a.Metric(t, "oncegate_possible_second_runs_total") + r.b.Metric(t, "oncegate_possible_second_runs_total")
}

// TestReplicasOnce sends every event twenty times in parallel over both.
func TestReplicasOnce(t *testing.T) {
	const events, copies = 100, 20
	r := newReplicas(t)
	work := deliveries(events, copies)
	answers := whileSending(t, work, r.gates(), func(context.Context) {})
	first := make(firstAnswers)
	first.check(t, work, answers)
	shopRanEachOnce(t, r.shop, events)

	rand.Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
	first.check(t, work, whileSending(t, work, r.gates(), func(context.Context) {}))
	shopRanEachOnce(t, r.shop, events)
}

// TestReplicasDisturbed breaks things that a good order of work survives
// without a second run.
func TestReplicasDisturbed(t *testing.T) {
	const events, copies = 80, 5
	for name, disturb := range map[string]func(*testing.T, *replicas, context.Context){
		"a rolling restart": func(t *testing.T, r *replicas, busy context.Context) {
			for _, gate := range r.gates() {
				pause(busy, 400*time.Millisecond)
				gate.Stop(t)
				gate.Start(t)
			}
		},
		"the store restarts": func(t *testing.T, r *replicas, busy context.Context) {
			for range 2 {
				pause(busy, 500*time.Millisecond)
				r.store.Stop(t)
				r.store.Start(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplicas(t)
			work := deliveries(events, copies)
			answers := whileSending(t, work, r.gates(), func(busy context.Context) { disturb(t, r, busy) })
			make(firstAnswers).check(t, work, answers)
			shopRanEachOnce(t, r.shop, events)
		})
	}
}

// TestReplicasBroken breaks a replica in the middle of its attempts. What it
// had in hand is unknown, so a second run is possible: announced and counted.
func TestReplicasBroken(t *testing.T) {
	const events, copies = 80, 5
	t.Run("one is killed and started again", func(t *testing.T) {
		r := newReplicas(t)
		var before int
		work := deliveries(events, copies)
		answers := whileSending(t, work, r.gates(), func(busy context.Context) {
			for range 3 {
				pause(busy, 500*time.Millisecond)
				r.a.Kill(t)
				before = len(r.shop.Runs(t))
				r.a.Start(t)
			}
		})
		allAccepted(t, work, answers)
		seconds := everyRunAnnounced(t, r.shop, events, before)
		if got := r.secondRuns(t); got < float64(seconds) {
			t.Errorf("%v possible second runs were counted, and %d happened", got, seconds)
		}
	})
	t.Run("one is paused past its lease", func(t *testing.T) {
		r := newReplicas(t)
		work := deliveries(events, copies)
		answers := whileSending(t, work, r.gates(), func(busy context.Context) {
			pause(busy, 500*time.Millisecond)
			r.b.Pause(t)
			pause(busy, 8*time.Second) // lease and app limit, and more
			r.b.Resume(t)
		})
		allAccepted(t, work, answers)
		seconds := everyRunAnnounced(t, r.shop, events, 0)
		if got := r.secondRuns(t); got < float64(seconds) {
			t.Errorf("%v possible second runs were counted, and %d happened", got, seconds)
		}
	})
}
