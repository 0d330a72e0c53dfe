package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	firstPayPause = 50 * time.Millisecond
	mostPayPause  = 2 * time.Second
)

// owed keeps the writes that the store did not take in time, and writes them
// when it can. One goroutine pays; it lives while there is something to pay.
type owed struct {
	g *Gate

	mu     sync.Mutex // guards what follows
	debts  []*debt
	keys   map[Key]int
	paying bool
	closed bool
	quit   chan struct{} // closed when paying must end
	stop   sync.Once
	done   sync.WaitGroup
}

func newOwed(g *Gate) *owed {
	return &owed{g: g, keys: make(map[Key]int), quit: make(chan struct{})}
}

func (o *owed) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.debts)
}

// holds reports whether a write on the key is owed.
func (o *owed) holds(k Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keys[k] > 0
}

// add takes a debt over. It is bounded by the attempts in hand: while a key is
// owed, no attempt begins on it, and while the store is out, none at all.
func (o *owed) add(d *debt) {
	o.g.observe(Event{Kind: EventOwed, Scope: d.key.Scope})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.debts = append(o.debts, d)
	o.keys[d.key]++
	if !o.paying && !o.closed {
		o.paying = true
		o.done.Go(o.pay)
	}
}

// pay pays until nothing is owed.
func (o *owed) pay() {
	pause := firstPayPause
	for {
		select {
		case <-time.After(pause):
		case <-o.quit:
			return
		}
		if o.round() == 0 {
			pause = min(pause*2, mostPayPause)
		} else {
			pause = firstPayPause
		}
		o.mu.Lock()
		if len(o.debts) == 0 {
			o.paying = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
	}
}

// round tries to pay all that is owed, a trip's worth at a time and each key
// once in it, and says how much it paid.
func (o *owed) round() (paid int) {
	o.mu.Lock()
	var batches [][]*debt
	var batch []*debt
	inBatch := make(map[Key]bool)
	for _, d := range o.debts {
		if len(batch) == maxTripItems || inBatch[d.key] {
			batches, batch = append(batches, batch), nil
			clear(inBatch)
		}
		batch = append(batch, d)
		inBatch[d.key] = true
	}
	batches = append(batches, batch)
	o.mu.Unlock()

	for _, batch := range batches {
		ctx, cancel := context.WithTimeout(context.Background(), o.g.timeout)
		left := o.g.pay(ctx, batch)
		failed := ctx.Err() != nil
		cancel()
		o.remove(batch, left)
		paid += len(batch) - len(left)
		if failed {
			break
		}
	}
	return paid
}

// remove takes the debts of a batch but those left off the list, and wakes who
// waits for their keys.
func (o *owed) remove(batch, left []*debt) {
	stays := make(map[*debt]bool, len(left))
	for _, d := range left {
		stays[d] = true
	}
	gone := make(map[*debt]bool, len(batch))
	for _, d := range batch {
		gone[d] = !stays[d]
	}
	o.mu.Lock()
	kept := make([]*debt, 0, len(o.debts))
	for _, d := range o.debts {
		if !gone[d] {
			kept = append(kept, d)
			continue
		}
		if o.keys[d.key]--; o.keys[d.key] == 0 {
			delete(o.keys, d.key)
		}
	}
	o.debts = kept
	o.mu.Unlock()
	for d, paid := range gone {
		if paid {
			o.g.observe(Event{Kind: EventPaid, Scope: d.key.Scope})
			o.g.wake(d.key.Digest)
		}
	}
}

// close gives what is owed until ctx is over to be paid. Its error says how
// much is lost.
func (o *owed) close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		o.done.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		o.stop.Do(func() { close(o.quit) })
		<-idle
	}
	if n := o.len(); n > 0 {
		return fmt.Errorf("the store took %d writes too few: the claims they settle will be found lapsed", n)
	}
	return nil
}
