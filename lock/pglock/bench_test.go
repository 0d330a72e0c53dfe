package pglock_test

import (
	"fmt"
	"testing"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// BenchmarkBeginAndSettle measures the two writes of a fresh event, in batches
// as they gather under load. It reports the time per event.
func BenchmarkBeginAndSettle(b *testing.B) {
	p := servers.Postgres(b)
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := open(b, pglock.Options{URL: p.URL(p.Database(b))})
			defer s.Close()
			n := 0
			for b.Loop() {
				batch := make([]lock.Change, size)
				for i := range batch {
					batch[i] = locktest.Begin(fmt.Sprint("evt_", n, "_", i))
				}
				n++
				locktest.MustApply(b, s, batch...)
				for i := range batch {
					batch[i] = locktest.Settle(batch[i])
				}
				locktest.MustApply(b, s, batch...)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "µs/event")
		})
	}
}

// BenchmarkDuplicate measures the one question of a duplicate: a begin that is
// refused.
func BenchmarkDuplicate(b *testing.B) {
	p := servers.Postgres(b)
	s := open(b, pglock.Options{URL: p.URL(p.Database(b))})
	defer s.Close()
	c := locktest.Begin("evt_1")
	locktest.MustApply(b, s, c)
	locktest.MustApply(b, s, locktest.Settle(c))
	for b.Loop() {
		if _, err := s.Apply(b.Context(), []lock.Change{locktest.Begin("evt_1")}); err != nil {
			b.Fatal(err)
		}
	}
}
