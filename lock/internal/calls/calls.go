// Package calls lets a store's Close wait for the calls under way.
package calls

import (
	"fmt"
	"sync"

	"oncegate/lock"
)

// ErrClosed is what a call after Close returns. It is an ErrUnavailable.
var ErrClosed = fmt.Errorf("the store was closed: %w", lock.ErrUnavailable)

// Calls counts the calls under way. The zero value is ready.
type Calls struct {
	mu     sync.Mutex // guards closed, and orders under.Add before under.Wait
	closed bool
	under  sync.WaitGroup
}

// Begin announces a call; its end calls done. It fails after Close.
func (c *Calls) Begin() (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.under.Add(1)
	return c.under.Done, nil
}

// Close lets no further call begin, waits for those under way, and reports
// whether it was the first to close.
func (c *Calls) Close() (first bool) {
	c.mu.Lock()
	first = !c.closed
	c.closed = true
	c.mu.Unlock()
	c.under.Wait()
	return first
}
