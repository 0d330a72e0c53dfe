package sqlitelock_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/sqlitelock"
)

// BenchmarkBeginAndSettle measures the two writes of a fresh event, in batches
// as they gather under load. It reports the time per event.
func BenchmarkBeginAndSettle(b *testing.B) {
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := sqlitelock.Open(filepath.Join(b.TempDir(), "claims.db"), sqlitelock.Options{})
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

// BenchmarkRead measures the one question of a duplicate.
func BenchmarkRead(b *testing.B) {
	s := sqlitelock.Open(filepath.Join(b.TempDir(), "claims.db"), sqlitelock.Options{})
	defer s.Close()
	c := locktest.Begin("evt_1")
	locktest.MustApply(b, s, c)
	locktest.MustApply(b, s, locktest.Settle(c))
	for b.Loop() {
		if _, err := s.Read(b.Context(), []lock.Key{c.Next.Key}); err != nil {
			b.Fatal(err)
		}
	}
}
