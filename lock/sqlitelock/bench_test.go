package sqlitelock_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oncegate/lock"
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
					batch[i] = change(fmt.Sprint("evt_", n, "_", i))
				}
				n++
				mustApply(b, s, batch)
				for i := range batch {
					batch[i] = settle(batch[i])
				}
				mustApply(b, s, batch)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "µs/event")
		})
	}
}

// BenchmarkRead measures the one question of a duplicate.
func BenchmarkRead(b *testing.B) {
	s := sqlitelock.Open(filepath.Join(b.TempDir(), "claims.db"), sqlitelock.Options{})
	defer s.Close()
	c := change("evt_1")
	mustApply(b, s, []lock.Change{c})
	mustApply(b, s, []lock.Change{settle(c)})
	for b.Loop() {
		if _, err := s.Read(b.Context(), []lock.Key{c.Next.Key}); err != nil {
			b.Fatal(err)
		}
	}
}

func settle(c lock.Change) lock.Change {
	c.Expect, c.Next.Version, c.Seen = c.Next.Version, lock.NewVersion(), false
	c.Next.State, c.Next.Reason = lock.StateDone, lock.ReasonAnswered
	c.Next.Lease, c.Next.RunsUntil, c.Next.Retain = 0, 0, 35*24*time.Hour
	c.Next.AnswerStatus, c.Next.AnswerHeader, c.Next.AnswerBody = 200, make([]byte, 100), make([]byte, 300)
	return c
}

func mustApply(b *testing.B, s *sqlitelock.Store, batch []lock.Change) {
	results, err := s.Apply(b.Context(), batch)
	if err != nil {
		b.Fatal(err)
	}
	for i, r := range results {
		if !r.Applied(batch[i]) {
			b.Fatal("refused")
		}
	}
}
