// Package ready lets the first call of a store see to its tables.
package ready

import (
	"context"
	"fmt"
	"sync/atomic"

	"oncegate/lock"
)

// A Ready is work that must have been done once. Unlike sync.Once it is tried
// again after a failure, and nobody waits for longer than their context.
type Ready struct {
	done atomic.Bool
	busy chan struct{} // holds one while somebody is at work
}

// New returns work that has not been done.
func New() *Ready { return &Ready{busy: make(chan struct{}, 1)} }

// Do does the work, unless it has been done; if somebody is at it, it waits.
func (r *Ready) Do(ctx context.Context, work func() error) error {
	if r.done.Load() {
		return nil
	}
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return fmt.Errorf("wait for the store's tables: %w: %w", lock.ErrUnavailable, ctx.Err())
	}
	if r.done.Load() {
		return nil
	}
	if err := work(); err != nil {
		return err
	}
	r.done.Store(true)
	return nil
}
