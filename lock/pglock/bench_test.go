package pglock_test

import (
	"fmt"
	"testing"
	"time"

	"oncegate/lock"
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

// BenchmarkDuplicate measures the one question of a duplicate: a begin that is
// refused.
func BenchmarkDuplicate(b *testing.B) {
	p := servers.Postgres(b)
	s := open(b, pglock.Options{URL: p.URL(p.Database(b))})
	defer s.Close()
	c := change("evt_1")
	mustApply(b, s, []lock.Change{c})
	mustApply(b, s, []lock.Change{settle(c)})
	for b.Loop() {
		if _, err := s.Apply(b.Context(), []lock.Change{change("evt_1")}); err != nil {
			b.Fatal(err)
		}
	}
}

func change(text string) lock.Change {
	return lock.Change{Seen: true, Next: lock.Record{
		Key: lock.KeyOf("shop", "stripe", text), Text: text, State: lock.StateRunning, Attempt: 1,
		Token: lock.NewToken(), Version: lock.NewVersion(), Lease: time.Minute, RunsUntil: time.Minute,
	}}
}

func settle(c lock.Change) lock.Change {
	c.Expect, c.Next.Version, c.Seen = c.Next.Version, lock.NewVersion(), false
	c.Next.State, c.Next.Reason = lock.StateDone, lock.ReasonAnswered
	c.Next.Lease, c.Next.RunsUntil, c.Next.Retain = 0, 0, 35*24*time.Hour
	c.Next.AnswerStatus, c.Next.AnswerHeader, c.Next.AnswerBody = 200, make([]byte, 100), make([]byte, 300)
	return c
}

func mustApply(t testing.TB, s *pglock.Store, batch []lock.Change) {
	t.Helper()
	results, err := s.Apply(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if !r.Applied(batch[i]) {
			t.Fatal("refused")
		}
	}
}
