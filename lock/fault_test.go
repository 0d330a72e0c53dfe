package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"oncegate/lock"
)

// A faulty store stands before the real one and fails calls as told.
type faulty struct {
	lock.Store
	mu sync.Mutex
	// fault is asked before each write: it says whether the write happens and
	// whether its reply comes.
	fault func(n int, batch []lock.Change) (applied, replied bool)
	// refuses says why the store does not take a write; nil: it does.
	refuses func([]lock.Change) error
	reads   func() bool // whether reads succeed; nil: they do
	calls   int
}

var errCut = fmt.Errorf("connection cut: %w", lock.ErrUnavailable)

func (f *faulty) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	f.mu.Lock()
	f.calls++
	applied, replied := true, true
	if f.fault != nil {
		applied, replied = f.fault(f.calls, batch)
	}
	refuses := f.refuses
	f.mu.Unlock()
	if !applied {
		return nil, errCut
	}
	if refuses != nil {
		if err := refuses(batch); err != nil {
			return nil, err
		}
	}
	results, err := f.Store.Apply(ctx, batch)
	if !replied {
		return nil, errCut
	}
	return results, err
}

func (f *faulty) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	f.mu.Lock()
	ok := f.reads == nil || f.reads()
	f.mu.Unlock()
	if !ok {
		return nil, errCut
	}
	return f.Store.Read(ctx, keys)
}

// refuse ends all other faults.
func (f *faulty) refuse(refuses func([]lock.Change) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.refuses = nil, refuses
}

func (f *faulty) set(fault func(int, []lock.Change) (bool, bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.calls = fault, 0
}

// A process whose store calls stand still is frozen, as SIGSTOP would freeze it:
// what it has begun stands, and nothing it does gets through until it thaws.
type process struct {
	gate *lock.Gate
	f    *faulty
	mu   sync.Mutex
	ice  chan struct{}
	// slowReply is how long the replies of the store are under way.
	slowReply time.Duration
}

func (r *rig) frozen() *process {
	p := &process{f: &faulty{Store: r.store.Sibling()}}
	p.gate = r.gate(frozenStore{p})
	r.t.Cleanup(p.thaw)
	return p
}

type frozenStore struct{ p *process }

func (s frozenStore) wait() {
	s.p.mu.Lock()
	ice := s.p.ice
	s.p.mu.Unlock()
	if ice != nil {
		<-ice
	}
}

func (s frozenStore) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	s.wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer time.Sleep(s.p.slowReply)
	return s.p.f.Apply(ctx, batch)
}

func (s frozenStore) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	s.wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.p.f.Read(ctx, keys)
}

func (s frozenStore) Close() error { return nil }

func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ice = make(chan struct{})
}

func (p *process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ice != nil {
		close(p.ice)
		p.ice = nil
	}
}

func TestLostReplies(t *testing.T) {
	bubble(t, "B64 a begin whose reply was lost knows its own claim", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		f.set(func(n int, _ []lock.Change) (bool, bool) { return true, n > 1 })
		g := r.gate(f)
		start := time.Now()
		a := r.run(g, ask("evt_1"))
		if a.Number() != 1 || time.Since(start) > time.Second {
			t.Errorf("attempt %d after %v: it waited for itself", a.Number(), time.Since(start))
		}
		a.Settle(done("once"))
		r.replays(g, "evt_1", "once")
	})

	bubble(t, "B36 a store out of reach refuses within its timeout, and the event is fresh afterwards", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling(), reads: func() bool { return false }}
		f.set(func(int, []lock.Change) (bool, bool) { return false, false })
		g := r.gate(f)
		start := time.Now()
		r.begin(g, ask("evt_1"), lock.Unavailable)
		if took := time.Since(start); took > 2100*time.Millisecond {
			t.Errorf("refused after %v", took)
		}
		start = time.Now()
		r.begin(g, ask("evt_1"), lock.Unavailable)
		if took := time.Since(start); took > 2100*time.Millisecond {
			t.Errorf("a duplicate, whose begin is owed an undo, was refused after %v", took)
		}
		f.set(nil)
		f.mu.Lock()
		f.reads = nil
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		if g.Owed() != 0 {
			t.Error("the undo is still owed")
		}
		a := r.run(g, ask("evt_1"))
		a.Settle(done("fresh"))
	})

	bubble(t, "a given-up begin that lands late does not stand", func(t *testing.T, r *rig) {
		var late []lock.Change
		f := &faulty{Store: r.store.Sibling()}
		f.set(func(_ int, batch []lock.Change) (bool, bool) {
			if late == nil && batch[0].Next.State == lock.StateRunning {
				late = batch
			}
			return batch[0].Next.State != lock.StateRunning, true
		})
		g := r.gate(f)
		r.begin(g, ask("evt_1"), lock.Unavailable)
		f.set(nil)
		time.Sleep(5 * time.Second)
		if _, err := r.store.Apply(context.Background(), late); err != nil {
			t.Fatal(err)
		}
		rec := r.record("evt_1")
		if rec.State != lock.StateReleased || rec.Attempt != 1 || rec.Reason != lock.ReasonGivenUp {
			t.Errorf("stands as %s, attempt %d, %s", rec.State, rec.Attempt, rec.Reason)
		}
		if a := r.run(g, ask("evt_1")); a.Number() != 2 {
			t.Errorf("attempt %d", a.Number())
		} else {
			a.Settle(done(""))
		}
	})

	bubble(t, "a given-up begin over an unknown claim finds its version gone", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		g := r.gate(f)
		r.run(g, ask("evt_1")).Settle(broken)
		var late []lock.Change
		f.set(func(_ int, batch []lock.Change) (bool, bool) {
			if batch[0].Next.State != lock.StateRunning || batch[0].Expect == lock.None {
				return true, true
			}
			late = batch
			return false, false
		})
		r.begin(g, ask("evt_1"), lock.Unavailable)
		f.set(nil)
		time.Sleep(5 * time.Second)
		if _, err := r.store.Apply(context.Background(), late); err != nil {
			t.Fatal(err)
		}
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown || rec.Attempt != 1 {
			t.Errorf("stands as %s, attempt %d", rec.State, rec.Attempt)
		}
	})

	bubble(t, "B35 a settle that the store does not take is owed, and written later", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		a, b := r.gate(f), r.gate()
		long := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.Lease = 30 * time.Second })
		attempt := r.run(a, long)
		f.set(func(int, []lock.Change) (bool, bool) { return false, false })
		start := time.Now()
		if got := attempt.Settle(done("owed")); got != lock.SettleOwed {
			t.Fatalf("settle: %d", got)
		}
		if took := time.Since(start); took > 2100*time.Millisecond {
			t.Errorf("the answer was kept for %v", took)
		}
		// Neither this process nor another runs the event meanwhile, nor answers as if done.
		short := with(ask("evt_1"), func(a *lock.Ask, _ *lock.Policy) { a.Wait = 100 * time.Millisecond })
		r.begin(a, short, lock.Settling)
		f.set(nil)
		r.replays(b, "evt_1", "owed")
		r.replays(a, "evt_1", "owed")
	})

	bubble(t, "B64 a settle whose reply was lost stands", func(t *testing.T, r *rig) {
		f := &faulty{Store: r.store.Sibling()}
		g := r.gate(f)
		attempt := r.run(g, ask("evt_1"))
		f.set(func(n int, _ []lock.Change) (bool, bool) { return true, n > 2 })
		if got := attempt.Settle(done("stands")); got != lock.SettleStands {
			t.Fatalf("settle: %d", got)
		}
		r.replays(g, "evt_1", "stands")
	})
}
