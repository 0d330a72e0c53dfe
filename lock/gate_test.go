package lock_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

// A rig is one store and the processes that share it, in a bubble of fake time.
type rig struct {
	t      *testing.T
	store  *memlock.Store
	events map[lock.EventKind]*atomic.Int64
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: memlock.New(), events: map[lock.EventKind]*atomic.Int64{}}
	for k := range lock.EventJournalError + 1 {
		r.events[k] = new(atomic.Int64)
	}
	return r
}

// gate returns the Gate of another process, on the shared store or one that
// stands before it.
func (r *rig) gate(through ...lock.Store) *lock.Gate {
	var store lock.Store = r.store.Sibling()
	if len(through) > 0 {
		store = through[0]
	}
	g := lock.NewGate(store, lock.Options{
		StoreTimeout: 2 * time.Second, Memory: 1 << 20,
		Observe: func(e lock.Event) { r.events[e.Kind].Add(1) },
	})
	r.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = g.Close(ctx)
	})
	return g
}

func (r *rig) count(k lock.EventKind) int { return int(r.events[k].Load()) }

// record reads a record once all goroutines rest: what a Gate gives back or
// pays, it does beside its answer.
func (r *rig) record(id string) lock.Record {
	r.t.Helper()
	synctest.Wait()
	records, err := r.store.Read(context.Background(), []lock.Key{item(id).Key})
	if err != nil {
		r.t.Fatal(err)
	}
	return records[0]
}

var patient = &lock.Policy{Lease: 2 * time.Second, Retention: time.Hour}

func item(id string) lock.Item { return lock.Item{Key: lock.KeyOf("shop", "stripe", id), Text: id} }

func ask(ids ...string) *lock.Ask {
	a := &lock.Ask{Policy: patient, Wait: 5 * time.Second, Payload: lock.KeyOf("", "", "X").Digest}
	for _, id := range ids {
		a.Items = append(a.Items, item(id))
	}
	return a
}

func with(a *lock.Ask, change func(*lock.Ask, *lock.Policy)) *lock.Ask {
	p := *a.Policy
	a.Policy = &p
	change(a, &p)
	return a
}

func done(body string) lock.Ending {
	return lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: &lock.Answer{
		Status: 200, Header: []lock.Line{{Name: "Content-Type", Value: "text/plain"}}, Body: []byte(body),
	}}
}

var (
	broken   = lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonBroken}
	fiveOO   = lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonAnswered, Answered: true}
	released = lock.Ending{State: lock.StateReleased, Reason: lock.ReasonAnswered}
)

func (r *rig) begin(g *lock.Gate, a *lock.Ask, want lock.Verdict) lock.Decision {
	r.t.Helper()
	d := g.Begin(context.Background(), a)
	if d.Verdict != want {
		r.t.Errorf("verdict %d, want %d (error %v)", d.Verdict, want, d.Err)
	}
	if a := d.Attempt; a != nil {
		r.t.Cleanup(func() {
			if !a.IsSettled() {
				a.Settle(broken)
			}
		})
	}
	if d.Verdict != want {
		r.t.FailNow()
	}
	return d
}

// run begins an attempt and starts it.
func (r *rig) run(g *lock.Gate, a *lock.Ask) *lock.Attempt {
	r.t.Helper()
	attempt := r.begin(g, a, lock.Run).Attempt
	if err := attempt.Start(); err != nil {
		r.t.Fatalf("start: %v", err)
	}
	return attempt
}

func (r *rig) replays(g *lock.Gate, id, body string) {
	r.t.Helper()
	d := r.begin(g, ask(id), lock.Replay)
	if got := string(d.Answer.Body); got != body {
		r.t.Fatalf("replay of %q, want %q", got, body)
	}
}

func bubble(t *testing.T, name string, f func(t *testing.T, r *rig)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newRig(t)) })
	})
}

func TestGate(t *testing.T) {
	bubble(t, "fresh, then replay in every process", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		if got := r.run(a, ask("evt_1")).Settle(done("hello")); got != lock.SettleStands {
			t.Fatalf("settle: %d", got)
		}
		r.replays(a, "evt_1", "hello")
		r.replays(b, "evt_1", "hello")
		time.Sleep(time.Hour)
		if d := r.begin(b, ask("evt_1"), lock.Run); d.Attempt.Number() != 1 {
			t.Fatal("after retention the event is new")
		} else {
			d.Attempt.Settle(released)
		}
	})

	bubble(t, "B30 duplicates of two processes wait for one attempt", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		attempt := r.run(a, ask("evt_1"))
		start := time.Now()
		var waiters sync.WaitGroup
		for i := range 20 {
			g := []*lock.Gate{a, b}[i%2]
			waiters.Go(func() {
				d := g.Begin(context.Background(), ask("evt_1"))
				if d.Verdict != lock.Replay || !d.Waited || string(d.Answer.Body) != "B30" {
					t.Errorf("verdict %d, waited %v", d.Verdict, d.Waited)
				}
				if late := time.Since(start) - 1500*time.Millisecond; late > 300*time.Millisecond {
					t.Errorf("answered %v after the attempt", late)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond)
		attempt.Settle(done("B30"))
		waiters.Wait()
	})

	bubble(t, "B30 the wait is over before the attempt", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		attempt := r.run(a, ask("evt_1"))
		for _, g := range []*lock.Gate{a, b} {
			start := time.Now()
			d := r.begin(g, ask("evt_1"), lock.Busy)
			if took := time.Since(start); took < 4500*time.Millisecond || took > 5500*time.Millisecond {
				t.Errorf("busy after %v", took)
			}
			if d.RetryAfter <= 0 {
				t.Error("no retry-after")
			}
		}
		attempt.Settle(done("late"))
		r.replays(b, "evt_1", "late")
	})

	bubble(t, "B25 a lease is renewed while the app works", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		attempt := r.run(a, ask("evt_1"))
		for range 3 {
			time.Sleep(3 * time.Second)
			short := with(ask("evt_1"), func(a *lock.Ask, _ *lock.Policy) { a.Wait = time.Second })
			r.begin(b, short, lock.Busy)
		}
		if r.count(lock.EventRenewed) < 9 {
			t.Errorf("%d renewals", r.count(lock.EventRenewed))
		}
		attempt.Settle(done("long"))
		r.replays(b, "evt_1", "long")
	})

	bubble(t, "B27 what did nothing is released, and runs again at once", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		r.run(a, ask("evt_1")).Settle(released)
		second := r.run(b, ask("evt_1"))
		if second.Number() != 2 || second.SecondRun() {
			t.Errorf("attempt %d, second run %v", second.Number(), second.SecondRun())
		}
		second.Settle(done("ok"))
	})

	bubble(t, "B27 a 500 has ended, and its successor may be a second run", func(t *testing.T, r *rig) {
		g := r.gate()
		limited := func() *lock.Ask {
			return with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = time.Minute })
		}
		r.run(g, limited()).Settle(fiveOO)
		third := r.run(g, limited())
		if !third.SecondRun() || r.count(lock.EventSecondRun) != 1 {
			t.Error("not announced as a possible second run")
		}
		third.Settle(released)
		fourth := r.run(g, limited())
		if !fourth.SecondRun() {
			t.Error("the doubt is gone after a release")
		}
		fourth.Settle(done(""))
	})

	bubble(t, "B27 nobody runs an event again while the app may be running", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		limited := func() *lock.Ask {
			return with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = 10 * time.Second })
		}
		attempt := r.run(a, limited())
		time.Sleep(3 * time.Second)
		attempt.Settle(broken)
		d := r.begin(b, limited(), lock.Settling)
		if d.RetryAfter < 6*time.Second || d.RetryAfter > 7*time.Second {
			t.Errorf("retry after %v", d.RetryAfter)
		}
		time.Sleep(2500 * time.Millisecond)
		start := time.Now()
		second := r.run(b, limited())
		if took := time.Since(start); took < 4*time.Second {
			t.Errorf("ran again %v early", 4500*time.Millisecond-took)
		}
		second.Settle(done(""))
	})

	bubble(t, "hold waits for an operator", func(t *testing.T, r *rig) {
		g := r.gate()
		hold := func() *lock.Ask {
			return with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
		}
		r.run(g, hold()).Settle(broken)
		for range 3 {
			r.begin(g, hold(), lock.Held)
			time.Sleep(time.Hour)
		}
	})

	bubble(t, "attempts without an answer turn into hold", func(t *testing.T, r *rig) {
		g := r.gate()
		two := func() *lock.Ask {
			return with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.Attempts = 2 })
		}
		r.run(g, two()).Settle(broken)
		r.run(g, two()).Settle(fiveOO)
		r.run(g, two()).Settle(broken)
		r.begin(g, two(), lock.Held)
	})

	bubble(t, "B34 a sender that hangs up stops nothing", func(t *testing.T, r *rig) {
		g := r.gate()
		ctx, hangUp := context.WithCancel(context.Background())
		d := g.Begin(ctx, ask("evt_1"))
		hangUp()
		if d.Attempt.Context().Err() != nil {
			t.Fatal("the attempt was cancelled")
		}
		left := g.Begin(ctx, ask("evt_1"))
		if left.Verdict != lock.Busy {
			t.Errorf("who hangs up while waiting is let go with %d", left.Verdict)
		}
		if err := d.Attempt.Start(); err != nil {
			t.Fatal(err)
		}
		d.Attempt.Settle(done("kept"))
		r.replays(g, "evt_1", "kept")
	})

	bubble(t, "B16 another payload under the same key", func(t *testing.T, r *rig) {
		other := func(refuse bool) *lock.Ask {
			return with(ask("evt_1"), func(a *lock.Ask, p *lock.Policy) {
				a.Payload = lock.KeyOf("", "", "Y").Digest
				p.RefuseMismatch = refuse
			})
		}
		a, b := r.gate(), r.gate()
		attempt := r.run(a, ask("evt_1"))
		r.begin(a, other(true), lock.Mismatch)
		r.begin(b, other(true), lock.Mismatch)
		attempt.Settle(fiveOO)
		r.begin(b, other(true), lock.Mismatch)
		r.run(b, ask("evt_1")).Settle(done("X"))
		r.begin(a, other(true), lock.Mismatch)
		r.begin(b, other(true), lock.Mismatch)
		if d := r.begin(b, other(false), lock.Replay); !d.Differs || string(d.Answer.Body) != "X" {
			t.Error("the difference goes unsaid")
		}
	})

	bubble(t, "B67 who waits for an attempt gets its answer, though the Gate is closing", func(t *testing.T, r *rig) {
		here, there := r.gate(), r.gate()
		r.run(there, ask("evt_0")).Settle(done("W"))
		attempts := []*lock.Attempt{r.run(here, ask("evt_1")), r.run(there, ask("evt_2"))}
		verdicts := make(chan lock.Decision)
		for i := range attempts {
			go func() { verdicts <- here.Begin(context.Background(), ask(fmt.Sprintf("evt_%d", i+1))) }()
		}
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- here.Close(t.Context()) }()
		time.Sleep(time.Second)
		if d := here.Begin(context.Background(), ask("evt_3")); d.Verdict != lock.Closing {
			t.Errorf("a delivery that comes after it got %d", d.Verdict)
		}
		for i := range attempts {
			if d := here.Begin(context.Background(), ask(fmt.Sprintf("evt_%d", i+1))); d.Verdict != lock.Busy {
				t.Errorf("a duplicate of what runs got %d", d.Verdict)
			}
		}
		if d := here.Begin(context.Background(), ask("evt_0")); d.Verdict != lock.Replay || string(d.Answer.Body) != "W" {
			t.Errorf("a duplicate of what is done got %d", d.Verdict)
		}
		for _, a := range attempts {
			a.Settle(done("X"))
			if d := <-verdicts; d.Verdict != lock.Replay || !d.Waited {
				t.Errorf("who waited got %d", d.Verdict)
			}
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})

	bubble(t, "B67 a closing Gate makes no attempt of who waits", func(t *testing.T, r *rig) {
		here, there := r.gate(), r.gate()
		attempt := r.run(there, ask("evt_1"))
		verdict := make(chan lock.Decision)
		go func() { verdict <- here.Begin(context.Background(), ask("evt_1")) }()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- here.Close(t.Context()) }()
		synctest.Wait()
		attempt.Settle(lock.Ending{State: lock.StateReleased, Reason: lock.ReasonAnswered})
		if d := <-verdict; d.Verdict != lock.Closing {
			t.Errorf("who waited got %d", d.Verdict)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})

	bubble(t, "Close answers who waits and cuts who runs", func(t *testing.T, r *rig) {
		g := r.gate()
		attempt := r.run(g, ask("evt_1"))
		waiter := make(chan lock.Decision)
		go func() { waiter <- g.Begin(context.Background(), ask("evt_1")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		go func() {
			<-attempt.Context().Done()
			attempt.Settle(lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonShutdown})
		}()
		if err := g.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if d := <-waiter; d.Verdict != lock.Closing && d.Verdict != lock.Busy {
			t.Errorf("the waiter got %d", d.Verdict)
		}
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown || rec.Reason != lock.ReasonShutdown {
			t.Errorf("left as %s, %s", rec.State, rec.Reason)
		}
	})
}

func TestTakeover(t *testing.T) {
	bubble(t, "B24 a lapsed lease is taken over, once", func(t *testing.T, r *rig) {
		dead, b := r.frozen(), r.gate()
		first := r.run(dead.gate, ask("evt_1"))
		dead.freeze()
		var hits atomic.Int64
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				d := b.Begin(context.Background(), ask("evt_1"))
				if d.Verdict == lock.Run {
					hits.Add(1)
					if d.Attempt.Number() != 2 || !d.Attempt.SecondRun() {
						t.Errorf("attempt %d", d.Attempt.Number())
					}
					d.Attempt.Settle(done("second"))
				} else if d.Verdict != lock.Replay {
					t.Errorf("verdict %d", d.Verdict)
				}
			})
		}
		both.Wait()
		if hits.Load() != 1 || r.count(lock.EventLapsed) != 1 {
			t.Errorf("%d runs, %d lapses", hits.Load(), r.count(lock.EventLapsed))
		}
		dead.thaw()
		first.Settle(broken)
	})

	for _, ending := range []struct {
		name string
		end  lock.Ending
		body string // what replays in the end
	}{
		{"a 2xx", done("A"), "B"},
		{"a failure", released, "B"},
		{"an unknown", broken, "B"},
	} {
		bubble(t, "B26 a paused holder comes back with "+ending.name+" after its successor is done", func(t *testing.T, r *rig) {
			a, b := r.frozen(), r.gate()
			first := r.run(a.gate, ask("evt_1"))
			a.freeze()
			time.Sleep(3 * time.Second)
			r.run(b, ask("evt_1")).Settle(done("B"))
			before := r.record("evt_1")
			a.thaw()
			if got := first.Settle(ending.end); got != lock.SettleFenced {
				t.Errorf("settle: %d", got)
			}
			if after := r.record("evt_1"); after.Version != before.Version {
				t.Error("the record was written")
			}
			r.replays(b, "evt_1", ending.body)
			if r.count(lock.EventFenced) != 1 {
				t.Errorf("%d fenced writes", r.count(lock.EventFenced))
			}
		})
	}

	bubble(t, "B26 a late 2xx waits for its successor, and stands if that fails", func(t *testing.T, r *rig) {
		a, b := r.frozen(), r.gate()
		first := r.run(a.gate, ask("evt_1"))
		a.freeze()
		time.Sleep(3 * time.Second)
		second := r.run(b, ask("evt_1"))
		a.thaw()
		if got := first.Settle(done("A")); got != lock.SettleFenced {
			t.Errorf("settle: %d", got)
		}
		if rec := r.record("evt_1"); rec.State != lock.StateRunning || rec.Attempt != 2 {
			t.Fatal("the successor's claim was touched")
		}
		second.Settle(broken)
		time.Sleep(5 * time.Second)
		r.replays(b, "evt_1", "A")
		if rec := r.record("evt_1"); rec.Mark&lock.MarkLate == 0 || r.count(lock.EventLate) != 1 {
			t.Error("not marked late")
		}
	})

	bubble(t, "the holder comes back before anybody took over", func(t *testing.T, r *rig) {
		a, b := r.frozen(), r.gate()
		hold := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
		first := r.run(a.gate, hold)
		a.freeze()
		time.Sleep(3 * time.Second)
		r.begin(b, hold, lock.Held)
		a.thaw()
		if got := first.Settle(done("A")); got != lock.SettleStands {
			t.Errorf("settle: %d", got)
		}
		r.replays(b, "evt_1", "A")
	})

	for _, state := range []lock.State{lock.StateReleased, lock.StateDone} {
		bubble(t, "a witness's word, "+state.String()+", ends the holder's claim although its token stands", func(t *testing.T, r *rig) {
			a, b := r.frozen(), r.gate()
			hold := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
			first := r.run(a.gate, hold)
			a.freeze()
			time.Sleep(3 * time.Second)
			r.begin(b, hold, lock.Held)
			rec := r.record("evt_1")
			next := rec
			next.Version, next.State, next.Mark, next.Retain = lock.NewVersion(), state, rec.Mark|lock.MarkWitness, time.Hour
			if _, err := r.store.Apply(context.Background(), []lock.Change{{Expect: rec.Version, Next: next}}); err != nil {
				t.Fatal(err)
			}
			a.thaw()
			time.Sleep(3 * time.Second) // it would renew
			first.Settle(broken)
			if now := r.record("evt_1"); now.Version != next.Version {
				t.Errorf("written as %s", now.State)
			}
		})
	}

	bubble(t, "nothing is sent on a lease that is over", func(t *testing.T, r *rig) {
		a, b := r.frozen(), r.gate()
		d := r.begin(a.gate, ask("evt_1"), lock.Run)
		a.freeze()
		time.Sleep(3 * time.Second)
		second := r.run(b, ask("evt_1"))
		a.thaw()
		if err := d.Attempt.Start(); err != lock.ErrFenced {
			t.Fatalf("start: %v", err)
		}
		d.Attempt.Settle(lock.Ending{State: lock.StateReleased, Reason: lock.ReasonUnsent})
		second.Settle(done("B"))
		r.replays(a.gate, "evt_1", "B")
	})

	bubble(t, "a lease that is over and nobody's is renewed before the first byte", func(t *testing.T, r *rig) {
		a := r.frozen()
		d := r.begin(a.gate, ask("evt_1"), lock.Run)
		a.freeze()
		time.Sleep(3 * time.Second)
		a.thaw()
		if err := d.Attempt.Start(); err != nil {
			t.Fatal(err)
		}
		if rec := r.record("evt_1"); rec.Lease <= time.Second {
			t.Errorf("lease %v", rec.Lease)
		}
		d.Attempt.Settle(done(""))
	})
}

func TestSets(t *testing.T) {
	bubble(t, "B13 any unseen item runs, all seen replays", func(t *testing.T, r *rig) {
		g := r.gate()
		r.run(g, ask("e1", "e2")).Settle(done("12"))
		r.begin(g, ask("e1", "e2"), lock.Replay)
		r.begin(g, ask("e2", "e1"), lock.Replay)
		r.run(g, ask("e1", "e3")).Settle(done("13"))
		if d := r.begin(g, ask("e3", "e1"), lock.Replay); string(d.Answer.Body) != "13" {
			t.Error("the first item's answer is replayed")
		}
	})

	bubble(t, "B57 a batch that waits for one event begins none of the others, and looks at that one alone", func(t *testing.T, r *rig) {
		ids := make([]string, 40)
		for i := range ids {
			ids[i] = fmt.Sprint("evt_", i)
		}
		slices.SortFunc(ids, func(x, y string) int {
			a, b := item(x).Key.Digest, item(y).Key.Digest
			return bytes.Compare(a[:], b[:])
		})
		elsewhere := r.run(r.gate(), ask(ids[0]))
		store := &counting{Store: r.store.Sibling()}
		here := r.gate(store)
		batch := make(chan lock.Decision)
		go func() { batch <- here.Begin(context.Background(), ask(ids...)) }()
		time.Sleep(4 * time.Second)
		for _, id := range ids[1:] {
			if rec := r.record(id); rec.Attempt > 1 {
				t.Errorf("%s is at attempt %d", id, rec.Attempt)
			}
		}
		if n := store.read.Load(); n > 500 {
			t.Errorf("%d records were read in 4 s", n)
		}
		elsewhere.Settle(done("X"))
		d := <-batch
		if d.Verdict != lock.Run || len(d.Attempt.Claimed()) != 39 || d.Attempt.Number() > 2 {
			t.Fatalf("got %d", d.Verdict)
		}
		d.Attempt.Settle(done("Y"))
	})

	bubble(t, "B13 overlapping batches at once never deadlock", func(t *testing.T, r *rig) {
		var runs [8]atomic.Int64
		var all sync.WaitGroup
		for i := range 24 {
			g := r.gate()
			all.Go(func() {
				var ids []string
				for k := range 3 {
					ids = append(ids, fmt.Sprint("e", (i*5+k*3)%8))
				}
				slices.Sort(ids)
				ids = slices.Compact(ids)
				d := g.Begin(context.Background(), with(ask(ids...), func(a *lock.Ask, _ *lock.Policy) { a.Wait = time.Minute }))
				if d.Verdict == lock.Replay {
					return
				}
				if d.Verdict != lock.Run || d.Attempt.Start() != nil {
					t.Errorf("verdict %d", d.Verdict)
					return
				}
				for _, k := range d.Attempt.Claimed() {
					if runs[k[1]-'0'].Add(1) > 1 {
						t.Errorf("%s runs twice at a time", k)
					}
				}
				time.Sleep(200 * time.Millisecond)
				for _, k := range d.Attempt.Claimed() {
					runs[k[1]-'0'].Add(-1)
				}
				d.Attempt.Settle(done("x"))
			})
		}
		all.Wait()
		for i := range runs {
			if rec := r.record(fmt.Sprint("e", i)); rec.State != lock.StateDone {
				t.Errorf("e%d is left %s", i, rec.State)
			}
		}
	})

	bubble(t, "a set that can't be had together gives back what it holds", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		other := r.run(a, ask("e2"))
		r.begin(b, ask("e1", "e2", "e3"), lock.Busy)
		for _, id := range []string{"e1", "e3"} {
			if rec := r.record(id); rec.Exists() && rec.State != lock.StateReleased {
				t.Errorf("%s is left %s", id, rec.State)
			}
		}
		other.Settle(done(""))
		r.run(b, ask("e1", "e2", "e3")).Settle(done(""))
	})

	bubble(t, "a set that waits keeps what comes before, and gives back what comes after", func(t *testing.T, r *rig) {
		ids := []string{"e1", "e2", "e3"}
		slices.SortFunc(ids, func(x, y string) int {
			a, b := item(x).Key.Digest, item(y).Key.Digest
			return bytes.Compare(a[:], b[:])
		})
		a, b := r.gate(), r.gate()
		other := r.run(a, ask(ids[1]))
		waits := make(chan lock.Decision)
		go func() { waits <- b.Begin(context.Background(), ask(ids...)) }()
		time.Sleep(time.Second)
		if rec := r.record(ids[0]); rec.State != lock.StateRunning {
			t.Errorf("before it: %s", rec.State)
		}
		if rec := r.record(ids[2]); rec.State == lock.StateRunning {
			t.Error("after it: running")
		}
		other.Settle(done(""))
		d := <-waits
		if d.Verdict != lock.Run || len(d.Attempt.Claimed()) != 2 {
			t.Fatalf("verdict %d", d.Verdict)
		}
		d.Attempt.Settle(done(""))
	})

	bubble(t, "B08 a guard makes of two IDs one event", func(t *testing.T, r *rig) {
		g := r.gate()
		guarded := func(id string) *lock.Ask {
			return with(ask(id), func(a *lock.Ask, _ *lock.Policy) {
				a.Guard = lock.Item{Key: lock.KeyOf("shop", "stripe", " guard body"), Text: "body"}
			})
		}
		r.run(g, guarded("D1")).Settle(done("one"))
		if d := r.begin(g, guarded("D2"), lock.Replay); string(d.Answer.Body) != "one" {
			t.Error("another answer")
		}
		if rec := r.record("D2"); rec.Exists() {
			t.Error("the second ID has a claim of its own")
		}
	})
}

// A counting store counts the records that are read.
type counting struct {
	lock.Store
	read atomic.Int64
}

func (c *counting) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	c.read.Add(int64(len(keys)))
	return c.Store.Read(ctx, keys)
}
