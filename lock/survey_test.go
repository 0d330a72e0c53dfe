package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

// A vast store is one that takes long to be looked through.
type vast struct {
	*memlock.Store
	takes   time.Duration
	counted atomic.Int64
	fails   atomic.Bool
}

func (v *vast) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	v.counted.Add(1)
	select {
	case <-time.After(v.takes):
	case <-ctx.Done():
		return lock.Counts{}, ctx.Err()
	}
	if v.fails.Load() {
		return lock.Counts{}, errors.New("no right to read")
	}
	return v.Store.Count(ctx, namespace)
}

func TestSurvey(t *testing.T) {
	start := func(r *rig, v *vast) (b *lock.Background, last func() *lock.Figures) {
		g := r.gate()
		r.run(g, ask("evt_done")).Settle(done(""))
		r.run(g, ask("evt_released")).Settle(released)
		r.run(g, ask("evt_unknown")).Settle(broken)
		time.Sleep(30 * time.Minute)
		var got atomic.Pointer[lock.Figures]
		b = lock.StartBackground(g, v, lock.BackgroundOptions{
			Namespace: "shop", Lease: 10 * time.Second, Horizons: map[string]time.Duration{"stripe": 20 * time.Minute}, Figures: func(f *lock.Figures) { got.Store(f) },
		})
		return b, got.Load
	}
	at := func(s lock.State) lock.ScopeState { return lock.ScopeState{Scope: "stripe", State: s} }

	bubble(t, "B59 a store that takes minutes to count holds up neither sweep nor figures of what is open", func(t *testing.T, r *rig) {
		v := &vast{Store: r.store, takes: 3 * time.Minute}
		b, last := start(r, v)
		time.Sleep(time.Minute)
		if f := last(); f == nil || f.Surveyed || f.Claims[at(lock.StateUnknown)] != 1 || f.Unfinished["stripe"] != 1 || f.Unknown["stripe"] < 30*time.Minute {
			t.Fatalf("before the first survey is over: %+v", f)
		}
		time.Sleep(4 * time.Minute)
		if f := last(); !f.Surveyed || f.Claims[at(lock.StateDone)] != 1 || f.Unfinished["stripe"] != 2 {
			t.Errorf("after it: %+v", f)
		}
		time.Sleep(50 * time.Minute)
		if v.counted.Load() != 1 {
			t.Errorf("counted %d times within the hour, at three minutes each", v.counted.Load())
		}
		time.Sleep(15 * time.Minute)
		if v.counted.Load() != 2 {
			t.Errorf("counted %d times", v.counted.Load())
		}
		b.Close()
	})
	bubble(t, "a store that is small is counted every minute", func(t *testing.T, r *rig) {
		v := &vast{Store: r.store, takes: 10 * time.Millisecond}
		b, last := start(r, v)
		time.Sleep(time.Second)
		if f := last(); f == nil || !f.Surveyed {
			t.Errorf("at once: %+v", f)
		}
		time.Sleep(10 * time.Minute)
		if n := v.counted.Load(); n < 9 || n > 11 {
			t.Errorf("counted %d times in ten minutes", v.counted.Load())
		}
		b.Close()
	})
	bubble(t, "a survey that fails is told, and made again; what is open is known all the same", func(t *testing.T, r *rig) {
		v := &vast{Store: r.store}
		v.fails.Store(true)
		b, last := start(r, v)
		time.Sleep(10 * time.Minute)
		if f := last(); f.Surveyed || f.Claims[at(lock.StateUnknown)] != 1 {
			t.Errorf("%+v", f)
		}
		if n := r.count(lock.EventBackgroundErr); n < 8 {
			t.Errorf("told %d times in ten minutes", n)
		}
		v.fails.Store(false)
		time.Sleep(2 * time.Minute)
		if f := last(); !f.Surveyed {
			t.Errorf("%+v", f)
		}
		b.Close()
	})
	bubble(t, "what is left past retention is counted", func(t *testing.T, r *rig) {
		g := r.gate()
		for i := range 25 {
			r.run(g, ask(string(rune('a'+i)))).Settle(done(""))
		}
		time.Sleep(time.Hour)
		counts, err := r.store.Count(t.Context(), "shop")
		if err != nil || counts.Over != 25 || len(counts.Claims) != 0 {
			t.Errorf("%+v, %v", counts, err)
		}
	})
}
