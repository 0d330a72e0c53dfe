package lock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

// A forgetful store is one whose server can be replaced by an empty one: a replica
// to which nothing was copied, a Redis that kept nothing on disk.
type forgetful struct{ now atomic.Pointer[memlock.Store] }

func (f *forgetful) forget() { f.now.Store(memlock.New()) }
func (f *forgetful) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	return f.now.Load().Apply(ctx, batch)
}
func (f *forgetful) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	return f.now.Load().Read(ctx, keys)
}
func (f *forgetful) Close() error { return nil }

// What a process knows of a claim that the store has forgotten is not lost, as long
// as nobody else has begun it.
func TestForgotten(t *testing.T) {
	// begun is an attempt that has sent something when the store forgets it.
	begun := func(t *testing.T, r *rig, a *lock.Ask) (*lock.Attempt, *lock.Gate, *forgetful) {
		store := &forgetful{}
		store.forget()
		attempt := r.run(r.gate(store), a)
		if err := attempt.Start(); err != nil {
			t.Fatal(err)
		}
		store.forget()
		return attempt, r.gate(store), store
	}
	held := func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown }

	bubble(t, "B63 a 2xx is written all the same", func(t *testing.T, r *rig) {
		a, other, _ := begun(t, r, ask("evt_1"))
		if got := a.Settle(done("A")); got != lock.SettleStands {
			t.Errorf("settled: %d", got)
		}
		if d := r.begin(other, ask("evt_1"), lock.Replay); string(d.Answer.Body) != "A" || d.Record.Attempt != 1 {
			t.Errorf("replayed %q, attempt %d", d.Answer.Body, d.Record.Attempt)
		}
	})
	bubble(t, "B63 what may have taken effect is unknown", func(t *testing.T, r *rig) {
		a, other, _ := begun(t, r, with(ask("evt_1"), held))
		a.Settle(broken)
		r.begin(other, with(ask("evt_1"), held), lock.Held)
	})
	bubble(t, "B63 a renewal makes the claim anew", func(t *testing.T, r *rig) {
		a, other, _ := begun(t, r, ask("evt_1"))
		time.Sleep(time.Second) // a third of the lease is over
		synctest.Wait()
		r.begin(other, with(ask("evt_1"), func(a *lock.Ask, _ *lock.Policy) { a.Wait = 0 }), lock.Busy)
		a.Settle(done("A"))
		r.begin(other, ask("evt_1"), lock.Replay)
	})
	bubble(t, "B63 the record of who began it meanwhile stands", func(t *testing.T, r *rig) {
		a, other, _ := begun(t, r, ask("evt_1"))
		b := r.run(other, ask("evt_1"))
		if got := a.Settle(done("A")); got != lock.SettleFenced {
			t.Errorf("settled: %d", got)
		}
		b.Settle(done("B"))
		if d := r.begin(other, ask("evt_1"), lock.Replay); string(d.Answer.Body) != "B" {
			t.Errorf("replayed %q", d.Answer.Body)
		}
	})
	bubble(t, "B63 a 2xx that comes late is written over nothing", func(t *testing.T, r *rig) {
		a, other, store := begun(t, r, ask("evt_1"))
		r.run(other, ask("evt_1"))
		a.Settle(done("A"))
		store.forget()
		time.Sleep(3 * time.Second)
		r.begin(r.gate(store), ask("evt_1"), lock.Replay)
	})
}
