package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"oncegate/lock"
)

// A Fault is what befalls one call of a Flaky store.
type Fault uint8

const (
	// NoFault lets the call through.
	NoFault Fault = iota
	// Before fails the call; nothing took effect, and nothing will.
	Before
	// After fails the call; all of it took effect. The reply was lost.
	After
	// Late fails the call; it takes effect right before the next call that
	// is let through, or at Flush.
	Late
	// Partly lets the call take effect, and loses the result of every second
	// change, from the first. For a read it is After.
	Partly
)

// ErrFault is what a call fails with; it is an lock.ErrUnavailable.
var ErrFault = fmt.Errorf("made to fail: %w", lock.ErrUnavailable)

// A Call tells a plan which call is being made.
type Call struct {
	// N counts the calls from 0.
	N int
	// Batch is what is to be applied; nil for a read.
	Batch []lock.Change
	// Keys are what is to be read; nil for a change.
	Keys []lock.Key
}

// A Flaky is a store whose calls fail by plan. Calls one at a time ask the
// plan; what they do then may happen at the same time.
type Flaky struct {
	store lock.Store

	mu   sync.Mutex // guards all below
	plan func(Call) Fault
	n    int
	late [][]lock.Change
}

// NewFlaky returns a store that fails as plan says. Close leaves store open.
func NewFlaky(store lock.Store, plan func(Call) Fault) *Flaky {
	return &Flaky{store: store, plan: plan}
}

// Each is a plan: the first call meets the first fault, and so on; calls after
// the last are let through.
func Each(faults ...Fault) func(Call) Fault {
	return func(c Call) Fault {
		if c.N < len(faults) {
			return faults[c.N]
		}
		return NoFault
	}
}

// Seeded is a plan: a call meets a random fault with the given probability.
func Seeded(seed uint64, probability float64) func(Call) Fault {
	random := rand.New(rand.NewPCG(seed, seed))
	return func(Call) Fault {
		if random.Float64() >= probability {
			return NoFault
		}
		return Before + Fault(random.IntN(4))
	}
}

// Apply implements lock.Store.
func (f *Flaky) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	fault, late := f.next(Call{Batch: batch})
	if err := f.send(ctx, late); err != nil {
		return nil, err
	}
	if fault == Before || fault == Late {
		return nil, ErrFault
	}
	results, err := f.store.Apply(ctx, batch)
	if err != nil || fault == NoFault {
		return results, err
	}
	if fault == After {
		return nil, ErrFault
	}
	for i := 0; i < len(results); i += 2 {
		results[i] = lock.Result{Err: ErrFault}
	}
	return results, nil
}

// Read implements lock.Store.
func (f *Flaky) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	fault, late := f.next(Call{Keys: keys})
	if err := f.send(ctx, late); err != nil {
		return nil, err
	}
	if fault != NoFault {
		return nil, ErrFault
	}
	return f.store.Read(ctx, keys)
}

// Flush lets what is late take effect.
func (f *Flaky) Flush(ctx context.Context) error {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	return f.send(ctx, late)
}

// Close drops what is late. The store below stays open.
func (f *Flaky) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = nil
	return nil
}

// next asks the plan, and takes what is late where the call is let through.
func (f *Flaky) next(c Call) (fault Fault, late [][]lock.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.N = f.n
	f.n++
	fault = f.plan(c)
	switch {
	case fault == Late && c.Batch != nil:
		f.late = append(f.late, append([]lock.Change(nil), c.Batch...))
	case fault == NoFault:
		late, f.late = f.late, nil
	}
	return fault, late
}

// send applies batches whose replies nobody waits for.
func (f *Flaky) send(ctx context.Context, batches [][]lock.Change) error {
	var errs []error
	for _, b := range batches {
		_, err := f.store.Apply(ctx, b)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
