package lock_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
)

func TestManyWitnessed(t *testing.T) {
	// unknown leaves so many claims unknown, and one that is past its retention.
	unknown := func(r *rig, g *lock.Gate, w *teller, n int) map[string]*lock.Policy {
		r.run(g, ask("old")).Settle(done(""))
		time.Sleep(2 * time.Hour)
		var policy *lock.Policy
		for i := range n {
			a := with(ask(fmt.Sprint("evt_", i)), func(a *lock.Ask, p *lock.Policy) {
				p.OnUnknown, p.Witness, policy = lock.WitnessUnknown, w, p
				a.Request = func() []byte { return []byte("the delivery") }
			})
			r.run(g, a).Settle(broken)
		}
		return map[string]*lock.Policy{"stripe": policy}
	}

	bubble(t, "B59 a witness that does not answer holds up neither purge nor figures, and is asked about each claim", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{err: errors.New("away"), hook: func(int) { time.Sleep(2 * time.Second) }}
		var figures atomic.Int64
		b := lock.StartBackground(g, r.store, lock.BackgroundOptions{
			Namespace: "shop", Lease: 12 * time.Second, Policies: unknown(r, g, w, 100),
			FiguresEvery: time.Minute, Figures: func(*lock.Figures) { figures.Add(1) },
		})
		time.Sleep(10 * time.Minute)
		b.Close()
		if rec := r.record("old"); rec.Exists() || r.count(lock.EventPurged) == 0 {
			t.Error("nothing is purged")
		}
		if n := figures.Load(); n < 9 {
			t.Errorf("figures were taken %d times", n)
		}
		if n := r.count(lock.EventBackgroundErr); n > 0 {
			t.Errorf("%d rounds failed", n)
		}
		asked := map[string]bool{}
		for _, q := range w.asked {
			asked[q.Text] = true
		}
		if len(asked) != 100 {
			t.Errorf("asked about %d claims", len(asked))
		}
	})

	for _, says := range []lock.Testimony{lock.TestifyHold, lock.TestifyRetry} {
		bubble(t, "B59 what there is no witness for is not asked about again and again: "+says.String(), func(t *testing.T, r *rig) {
			g, w := r.gate(), &teller{says: []lock.Testimony{says}}
			b := lock.StartBackground(g, r.store, lock.BackgroundOptions{Namespace: "shop", Lease: 12 * time.Second, Policies: unknown(r, g, w, 3)})
			time.Sleep(time.Hour)
			b.Close()
			if n := w.times(); n != 3 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}
