package lock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
)

// small is a store that takes nothing large: that is what it says then.
func small(says error) func([]lock.Change) error {
	return func(batch []lock.Change) error {
		for i := range batch {
			if len(batch[i].Next.AnswerBody) > 1000 || len(batch[i].Next.Request) > 1000 {
				return says
			}
		}
		return nil
	}
}

func TestOwed(t *testing.T) {
	big := done(string(make([]byte, 2000)))

	bubble(t, "one settle that the store refuses keeps no other from being paid", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		g := r.gate(f)
		for i := range 20 {
			r.run(g, ask(fmt.Sprint("bad_", i)))
		}
		var attempts []*lock.Attempt
		for i := range 5 {
			attempts = append(attempts, r.begin(g, ask(fmt.Sprint("bad", i)), lock.Run).Attempt)
			attempts = append(attempts, r.begin(g, ask(fmt.Sprint("good", i)), lock.Run).Attempt)
		}
		f.set(out)
		for i, a := range attempts {
			end := done("small")
			if i%2 == 0 {
				end = big
			}
			go a.Settle(end)
		}
		time.Sleep(3 * time.Second)
		if g.Owed() != 10 {
			t.Fatalf("%d owed", g.Owed())
		}
		f.refuse(small(lock.ErrUnavailable))
		time.Sleep(3 * time.Minute)
		if g.Owed() != 5 {
			t.Errorf("%d owed", g.Owed())
		}
		for i := range 5 {
			if rec := r.record(fmt.Sprint("good", i)); rec.State != lock.StateDone {
				t.Errorf("good%d is %s", i, rec.State)
			}
		}
		f.refuse(nil)
		f.set(nil)
		time.Sleep(30 * time.Second)
		if g.Owed() != 0 {
			t.Errorf("%d owed in the end", g.Owed())
		}
	})

	bubble(t, "an answer that the store refuses becomes a stub, and a request is let go", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		a, b := r.gate(f), r.gate()
		first := r.run(a, ask("evt_1"))
		second := r.run(a, with(ask("evt_2"), func(a *lock.Ask, _ *lock.Policy) { a.Request = func() []byte { return make([]byte, 2000) } }))
		f.refuse(small(errRefused))
		go second.Settle(fiveOO)
		if got := first.Settle(big); got != lock.SettleOwed {
			t.Fatalf("settle: %d", got)
		}
		time.Sleep(time.Minute)
		if d := r.begin(b, ask("evt_1"), lock.Replay); !d.Answer.Stub || len(d.Answer.Body) != 0 || d.Answer.Status != 200 || len(d.Answer.Header) != 1 {
			t.Errorf("%+v", d.Answer)
		}
		if rec := r.record("evt_2"); rec.State != lock.StateUnknown || rec.Request != nil {
			t.Errorf("evt_2 stands as %s", rec.State)
		}
		if a.Owed() != 0 {
			t.Errorf("%d owed", a.Owed())
		}
	})

	bubble(t, "renewals go on until the settle stands", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		a, b := r.gate(f), r.gate()
		long := func() *lock.Ask {
			return with(ask("evt_1"), func(a *lock.Ask, p *lock.Policy) { p.Lease, a.Wait = 10*time.Second, time.Second })
		}
		attempt := r.run(a, long())
		f.refuse(small(lock.ErrUnavailable))
		if got := attempt.Settle(big); got != lock.SettleOwed {
			t.Fatalf("settle: %d", got)
		}
		for range 10 {
			time.Sleep(10 * time.Second)
			r.begin(b, long(), lock.Busy)
		}
		f.refuse(nil)
		f.set(nil)
		time.Sleep(5 * time.Second)
		if d := r.begin(b, long(), lock.Replay); len(d.Answer.Body) != 2000 {
			t.Error("another answer")
		}
	})

	bubble(t, "a 2xx does not wait for a dead attempt", func(t *testing.T, r *rig) {
		a, b := r.frozen(), r.frozen()
		first := r.run(a.gate, ask("evt_1"))
		a.freeze()
		time.Sleep(3 * time.Second)
		r.run(b.gate, ask("evt_1"))
		b.freeze() // for ever, as far as a can tell
		defer b.thaw()
		a.thaw()
		if got := first.Settle(done("A")); got != lock.SettleFenced {
			t.Fatalf("settle: %d", got)
		}
		time.Sleep(10 * time.Second)
		if rec := r.record("evt_1"); rec.State != lock.StateDone || rec.Mark&lock.MarkLate == 0 || a.gate.Owed() != 0 {
			t.Errorf("stands as %s, owed %d", rec.State, a.gate.Owed())
		}
		r.replays(a.gate, "evt_1", "A")
	})

	bubble(t, "a settle is bounded, also while a renewal hangs", func(t *testing.T, r *rig) {
		p := r.frozen()
		attempt := r.run(p.gate, ask("evt_1"))
		p.f.set(func(int, []lock.Change) (bool, bool) {
			time.Sleep(1900 * time.Millisecond)
			return false, false
		})
		time.Sleep(700 * time.Millisecond) // a renewal is under way
		start := time.Now()
		attempt.Settle(done("x"))
		if took := time.Since(start); took > 2*time.Second+1900*time.Millisecond {
			t.Errorf("settled after %v", took)
		}
	})

	bubble(t, "what is owed for given-up begins is bounded", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		f.set(func(int, []lock.Change) (bool, bool) { return false, false })
		g := r.gate(f)
		g.LimitOwed(10)
		for i := range 30 {
			d := r.begin(g, ask(fmt.Sprint("evt_", i)), lock.Unavailable)
			if d.Err == nil {
				t.Error("it isn't said why")
			}
		}
		if n := g.Owed(); n > 10 {
			t.Errorf("%d owed", n)
		}
		f.refuse(nil)
		f.set(nil)
		time.Sleep(10 * time.Second)
		r.run(g, ask("evt_29")).Settle(done(""))
	})

	bubble(t, "a recovered lapse is no ending", func(t *testing.T, r *rig) {
		a, b := r.frozen(), r.gate()
		hold := func() *lock.Ask {
			return with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
		}
		first := r.run(a.gate, hold())
		a.freeze()
		time.Sleep(3 * time.Second)
		r.begin(b, hold(), lock.Held)
		a.thaw()
		time.Sleep(3 * time.Second) // it renews
		if rec := r.record("evt_1"); rec.State != lock.StateRunning || rec.Unanswered != 0 || rec.Mark&lock.MarkDoubt != 0 {
			t.Errorf("%s, %d without an answer, mark %d", rec.State, rec.Unanswered, rec.Mark)
		}
		first.Settle(released)
		if next := r.run(b, hold()); next.SecondRun() {
			t.Error("announced as a second run")
		} else {
			next.Settle(done(""))
		}
	})
}

func TestCoalescing(t *testing.T) {
	bubble(t, "a thousand duplicates are one question", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		reads := 0
		f.reads = func() bool { reads++; return true }
		g := r.gate(f)
		decisions := make(chan lock.Decision, 1000)
		for range 1000 {
			go func() {
				d := g.Begin(context.Background(), ask("evt_1"))
				if d.Verdict == lock.Run {
					time.Sleep(300 * time.Millisecond)
					d.Attempt.Settle(done("once"))
				}
				decisions <- d
			}()
		}
		runs := 0
		for range 1000 {
			switch d := <-decisions; d.Verdict {
			case lock.Run:
				runs++
			case lock.Replay:
				if string(d.Answer.Body) != "once" {
					t.Error("another answer")
				}
			default:
				t.Errorf("verdict %d", d.Verdict)
			}
		}
		if runs != 1 || f.calls != 2 || reads > 1 {
			t.Errorf("%d runs, %d writes, %d reads", runs, f.calls, reads)
		}
	})

	bubble(t, "a storm on what is done costs the store one question", func(t *testing.T, r *rig) {
		r.run(r.gate(), ask("evt_1")).Settle(done("old"))
		f := &faulty{Store: r.store.Sibling()}
		g := r.gate(f)
		for range 1000 {
			r.replays(g, "evt_1", "old")
		}
		if f.calls != 1 || r.count(lock.EventMemoryHit) != 999 {
			t.Errorf("%d questions, %d remembered", f.calls, r.count(lock.EventMemoryHit))
		}
	})

	bubble(t, "members of one set get the answer of their own first item", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		r.run(a, ask("e1")).Settle(done("1"))
		second := r.run(a, ask("e2"))
		answers := make(chan string, 2)
		for _, ids := range [][]string{{"e1", "e2"}, {"e2", "e1"}} {
			go func() {
				d := b.Begin(context.Background(), ask(ids...))
				answers <- ids[0] + " " + string(d.Answer.Body)
			}()
		}
		synctest.Wait()
		second.Settle(done("2"))
		for range 2 {
			if got := <-answers; got != "e1 1" && got != "e2 2" {
				t.Error(got)
			}
		}
	})
}
