package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
)

// A teller is a witness that says what it is told to, the last for ever.
type teller struct {
	mu    sync.Mutex
	says  []lock.Testimony
	err   error
	asked []lock.Question
	hook  func(n int)
}

func (w *teller) Ask(_ context.Context, q lock.Question) (lock.Testimony, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, q)
	if w.hook != nil {
		w.hook(len(w.asked))
	}
	if w.err != nil {
		return lock.TestifyYes, w.err // an error is no yes
	}
	said := w.says[0]
	if len(w.says) > 1 {
		w.says = w.says[1:]
	}
	return said, nil
}

func (w *teller) set(says ...lock.Testimony) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.says, w.err = says, nil
}

func (w *teller) times() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

func witnessed(w *teller, changes ...func(*lock.Ask, *lock.Policy)) *lock.Ask {
	return with(ask("evt_1"), func(a *lock.Ask, p *lock.Policy) {
		p.OnUnknown, p.Witness, p.WitnessAnswer = lock.WitnessUnknown, w, &lock.Answer{Status: 202}
		a.Request = func() []byte { return []byte("the delivery") }
		for _, change := range changes {
			change(a, p)
		}
	})
}

func TestWitness(t *testing.T) {
	limited := func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = 10 * time.Second }
	brief := func(a *lock.Ask, _ *lock.Policy) { a.Wait = 500 * time.Millisecond }

	bubble(t, "yes is done, with the configured answer", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyYes}}
		r.run(g, witnessed(w)).Settle(broken)
		d := r.begin(g, witnessed(w), lock.Replay)
		if d.Answer.Status != 202 || w.times() != 1 {
			t.Errorf("status %d, asked %d times", d.Answer.Status, w.times())
		}
		if rec := r.record("evt_1"); rec.Mark&lock.MarkWitness == 0 || rec.Reason != lock.ReasonWitness || rec.Request != nil {
			t.Errorf("mark %d, %s", rec.Mark, rec.Reason)
		}
		if q := w.asked[0]; string(q.Request) != "the delivery" || q.Text != "evt_1" {
			t.Errorf("asked %+v", q)
		}
	})

	bubble(t, "what is too large to keep is asked about while a delivery of it is there", func(t *testing.T, r *rig) {
		large := func(a *lock.Ask, p *lock.Policy) { a.Unkept, p.KeepRequest = true, true }
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyYes}}
		r.run(g, witnessed(w, large)).Settle(broken)
		if rec := r.record("evt_1"); rec.Request != nil {
			t.Errorf("kept %q", rec.Request)
		}
		if d := r.begin(g, witnessed(w, large), lock.Replay); d.Answer.Status != 202 {
			t.Errorf("status %d", d.Answer.Status)
		}
	})

	bubble(t, "no, asked twice, lets the delivery run, announced", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyNo}}
		r.run(g, witnessed(w)).Settle(broken)
		a := r.run(g, witnessed(w))
		if a.Number() != 2 || !a.SecondRun() || w.times() != 2 {
			t.Errorf("attempt %d, asked %d times", a.Number(), w.times())
		}
		a.Settle(done(""))
	})

	bubble(t, "no, then yes, is yes", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyNo, lock.TestifyYes}}
		r.run(g, witnessed(w)).Settle(broken)
		r.begin(g, witnessed(w), lock.Replay)
	})

	bubble(t, "no does not count while the app may be running", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyNo}}
		r.run(g, witnessed(w, limited)).Settle(broken)
		d := r.begin(g, witnessed(w, limited, brief), lock.Settling)
		if d.RetryAfter < 5*time.Second {
			t.Errorf("retry after %v", d.RetryAfter)
		}
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown || w.times() == 0 {
			t.Errorf("stands as %s, asked %d times", rec.State, w.times())
		}
		time.Sleep(5 * time.Second)
		w.set(lock.TestifyYes) // the app commits in the end
		r.begin(g, witnessed(w, limited), lock.Replay)
	})

	bubble(t, "a no counts only for the version read before asking", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyNo}}
		r.run(g, witnessed(w)).Settle(broken)
		w.hook = func(n int) {
			if n != 2 {
				return
			}
			// The record changes while the witness thinks: as if another had taken
			// over, and ended unknown with the app still running.
			rec := r.record("evt_1")
			next := rec
			next.Version, next.RunsUntil = lock.NewVersion(), time.Minute
			if _, err := r.store.Apply(context.Background(), []lock.Change{{Expect: rec.Version, Next: next}}); err != nil {
				t.Error(err)
			}
		}
		r.begin(g, witnessed(w, brief), lock.Settling)
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown {
			t.Errorf("stands as %s", rec.State)
		}
	})

	bubble(t, "a question that fails settles nothing, and is asked again", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{err: errors.New("database away")}
		r.run(g, witnessed(w)).Settle(broken)
		start := time.Now()
		r.begin(g, witnessed(w), lock.Settling)
		if n := w.times(); n < 3 || n > 7 || time.Since(start) > 5100*time.Millisecond {
			t.Errorf("asked %d times in %v", n, time.Since(start))
		}
		w.set(lock.TestifyYes)
		r.begin(g, witnessed(w), lock.Replay)
	})

	bubble(t, "otherwise: retry", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyRetry}}
		r.run(g, witnessed(w, limited)).Settle(broken)
		r.begin(g, witnessed(w, limited, brief), lock.Settling)
		time.Sleep(10 * time.Second)
		r.run(g, witnessed(w, limited)).Settle(done(""))
	})

	bubble(t, "otherwise: hold", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyHold}}
		r.run(g, witnessed(w)).Settle(broken)
		r.begin(g, witnessed(w), lock.Held)
		time.Sleep(time.Hour)
		r.begin(g, witnessed(w), lock.Held)
	})

	bubble(t, "B27 who does not wait hears what settles nothing", func(t *testing.T, r *rig) {
		impatient := func(a *lock.Ask, _ *lock.Policy) { a.Wait = 0 }
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyRetry}}
		r.run(g, witnessed(w)).Settle(broken)
		r.run(g, witnessed(w, impatient)).Settle(broken)
		w.set(lock.TestifyHold)
		r.begin(g, witnessed(w, impatient), lock.Held)
	})

	bubble(t, "a request that was kept is what the witness is asked about", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyYes}}
		r.run(g, witnessed(w)).Settle(broken)
		r.begin(g, witnessed(w, func(a *lock.Ask, _ *lock.Policy) {
			a.Request = func() []byte { return []byte("another delivery") }
		}), lock.Replay)
		if string(w.asked[0].Request) != "the delivery" {
			t.Errorf("asked about %q", w.asked[0].Request)
		}
	})

	bubble(t, "a late 2xx is better than a no", func(t *testing.T, r *rig) {
		a, b, w := r.frozen(), r.gate(), &teller{says: []lock.Testimony{lock.TestifyNo}}
		first := r.run(a.gate, witnessed(w))
		a.freeze()
		time.Sleep(3 * time.Second)
		r.run(b, witnessed(w)).Settle(released)
		a.thaw()
		first.Settle(done("late"))
		time.Sleep(time.Second)
		r.replays(b, "evt_1", "late")
	})
}

func TestBackground(t *testing.T) {
	bubble(t, "a lapsed attempt becomes unknown although nobody asks, by one replica", func(t *testing.T, r *rig) {
		dead := r.frozen()
		r.run(dead.gate, with(ask("evt_1"), func(a *lock.Ask, p *lock.Policy) {
			p.KeepRequest, a.Request = true, func() []byte { return []byte("kept") }
		}))
		r.run(dead.gate, ask("evt_2"))
		dead.freeze()
		defer dead.thaw()
		var all []*lock.Background
		for range 3 {
			all = append(all, lock.StartBackground(r.gate(), r.store, lock.BackgroundOptions{Namespace: "shop", Lease: 3 * time.Second}))
		}
		time.Sleep(5 * time.Second)
		for _, id := range []string{"evt_1", "evt_2"} {
			if rec := r.record(id); rec.State != lock.StateUnknown || rec.Reason != lock.ReasonLapsed {
				t.Errorf("%s stands as %s", id, rec.State)
			}
		}
		if rec := r.record("evt_1"); rec.Request == nil {
			t.Error("the kept request is lost")
		}
		if n := r.count(lock.EventSwept); n != 1 {
			t.Errorf("%d sweeps swept", n)
		}
		for _, b := range all {
			b.Close()
		}
	})

	bubble(t, "the duty is taken over when its replica stops, and at once when it ends", func(t *testing.T, r *rig) {
		dead, b, c := r.frozen(), r.gate(), r.gate()
		start := func(g *lock.Gate, n *atomic.Int64) *lock.Background {
			return lock.StartBackground(g, r.store, lock.BackgroundOptions{
				Namespace: "shop", Lease: 3 * time.Second, FiguresEvery: time.Second,
				Figures: func(f *lock.Figures) {
					if f != nil {
						n.Add(1)
					}
				},
			})
		}
		var first, second, third atomic.Int64
		x := start(dead.gate, &first)
		time.Sleep(10 * time.Second)
		y := start(b, &second)
		time.Sleep(10 * time.Second)
		if first.Load() < 10 || second.Load() != 0 {
			t.Errorf("figures taken %d and %d times", first.Load(), second.Load())
		}
		dead.freeze()
		time.Sleep(6 * time.Second)
		if second.Load() == 0 {
			t.Error("nobody took over")
		}
		dead.thaw()
		before := first.Load()
		time.Sleep(5 * time.Second)
		if first.Load() != before {
			t.Error("two replicas have the duty")
		}
		x.Close()
		y.Close()
		z := start(c, &third)
		time.Sleep(10 * time.Millisecond)
		if third.Load() != 1 {
			t.Error("the duty was not given back")
		}
		z.Close()
	})

	bubble(t, "B59 what is past retention is removed in batches, and nothing else", func(t *testing.T, r *rig) {
		g := r.gate()
		for i := range 25 {
			r.run(g, ask(string(rune('a'+i)))).Settle(done(""))
		}
		r.run(g, ask("unknown")).Settle(broken)
		time.Sleep(time.Hour)
		r.run(g, ask("young")).Settle(done(""))
		held := r.run(g, ask("running"))
		b := lock.StartBackground(g, r.store, lock.BackgroundOptions{Namespace: "shop", PurgeBatch: 10})
		time.Sleep(time.Second)
		b.Close()
		counts, err := r.store.Count(context.Background(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		for state, want := range map[lock.State]int{lock.StateDone: 1, lock.StateUnknown: 1, lock.StateRunning: 1} {
			if got := counts.Claims[lock.ScopeState{Scope: "stripe", State: state}]; got != want {
				t.Errorf("%d %s, want %d", got, state, want)
			}
		}
		if n := r.count(lock.EventPurged); n < 3 {
			t.Errorf("%d batches", n)
		}
		held.Settle(done(""))
	})

	bubble(t, "figures: how many, and which are unfinished", func(t *testing.T, r *rig) {
		g := r.gate()
		r.run(g, ask("evt_1")).Settle(broken)
		r.run(g, ask("evt_2")).Settle(released)
		time.Sleep(30 * time.Minute)
		r.run(g, ask("evt_3")).Settle(released)
		r.run(g, ask("evt_4")).Settle(done(""))
		var got *lock.Figures
		b := lock.StartBackground(g, r.store, lock.BackgroundOptions{
			Namespace: "shop", Horizons: map[string]time.Duration{"stripe": 20 * time.Minute}, Figures: func(f *lock.Figures) { got = f },
		})
		time.Sleep(time.Second)
		b.Close()
		if got.Unfinished["stripe"] != 2 || got.Claims[lock.ScopeState{Scope: "stripe", State: lock.StateReleased}] != 2 || len(got.Claims) != 3 {
			t.Errorf("%+v", got)
		}
	})

	bubble(t, "the sweep asks the witness, and forwards nothing", func(t *testing.T, r *rig) {
		g, w := r.gate(), &teller{says: []lock.Testimony{lock.TestifyNo}}
		a := witnessed(w, func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = 20 * time.Second })
		r.run(g, a).Settle(broken)
		b := lock.StartBackground(g, r.store, lock.BackgroundOptions{Namespace: "shop", Lease: 3 * time.Second, Policies: map[string]*lock.Policy{"stripe": a.Policy}})
		time.Sleep(19 * time.Second)
		if w.times() != 0 {
			t.Error("asked although a no would not count")
		}
		time.Sleep(3 * time.Second)
		if rec := r.record("evt_1"); rec.State != lock.StateReleased || rec.Mark&lock.MarkWitness == 0 || w.times() != 2 || rec.Request == nil {
			t.Errorf("stands as %s, asked %d times", rec.State, w.times())
		}
		b.Close()
	})

	bubble(t, "what fails is told, and tried again", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		f.set(out)
		g := r.gate(f)
		b := lock.StartBackground(g, r.store, lock.BackgroundOptions{Namespace: "shop", Lease: 3 * time.Second})
		time.Sleep(10 * time.Second)
		if r.count(lock.EventBackgroundErr) == 0 {
			t.Error("nobody was told")
		}
		f.set(nil)
		dead := r.frozen()
		r.run(dead.gate, ask("evt_1"))
		dead.freeze()
		defer dead.thaw()
		time.Sleep(10 * time.Second)
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown {
			t.Errorf("stands as %s", rec.State)
		}
		b.Close()
	})
}
