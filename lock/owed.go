package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	firstPayPause = 50 * time.Millisecond
	mostPayPause  = 2 * time.Second
	// While this many writes are owed, no attempt begins. An attempt whose begin
	// is given up owes one, so that many events can come in vain while the store
	// is out of reach.
	mostOwed = 1 << 16
)

var errOwesTooMuch = errors.New("too many writes are owed to the store")

// owed keeps the writes that the store did not take in time, and writes them
// when it can. One goroutine pays; it lives while there is something to pay.
type owed struct {
	g       *Gate
	journal *Journal // nil: what is owed dies with the process

	mu     sync.Mutex // guards what follows
	debts  []*debt
	keys   map[Key]int // how many debts are on it
	proven map[Key]int // and how many of those say that it is done
	paying bool
	closed bool
	quit   chan struct{} // closed when paying must end
	stop   sync.Once
	done   sync.WaitGroup

	most  int // debts in a trip; touched by who pays alone
	limit int // so many owed are too many
}

func newOwed(g *Gate, journal *Journal) *owed {
	return &owed{g: g, journal: journal, keys: make(map[Key]int), proven: make(map[Key]int), quit: make(chan struct{}), most: maxTripItems, limit: mostOwed}
}

func (o *owed) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.debts)
}

// full reports whether so much is owed that no attempt may begin.
func (o *owed) full() bool { return o.len() >= o.limit }

// holds reports whether a write on the key is owed.
func (o *owed) holds(k Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keys[k] > 0
}

// proves reports whether it is owed that the key's event is done.
func (o *owed) proves(k Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.proven[k] > 0
}

// add takes debts over, and returns when the journal has them, or has failed to
// take them: then this process is their only keeper.
func (o *owed) add(debts ...*debt) {
	if len(debts) == 0 {
		return
	}
	if o.journal == nil {
		o.keep(debts)
		return
	}
	entries := o.journal.entries(debts) // before somebody begins to pay them
	o.keep(debts)
	if err := o.journal.write(entries); err != nil {
		o.g.observe(Event{Kind: EventJournalError, N: len(debts), Err: err})
	}
}

// keep holds the debts' keys, and sees to it that they are paid.
func (o *owed) keep(debts []*debt) {
	for _, d := range debts {
		o.g.observe(Event{Kind: EventOwed, Scope: d.key.Scope})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.debts = append(o.debts, debts...)
	for _, d := range debts {
		o.keys[d.key]++
		if d.proves() {
			o.proven[d.key]++
		}
	}
	if !o.paying && !o.closed {
		o.paying = true
		o.done.Go(o.pay)
	}
}

// pay pays until nothing is owed.
func (o *owed) pay() {
	pause := firstPayPause
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-o.quit:
			timer.Stop()
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

// round tries to pay all that is owed, and says how much it paid. It ends with
// the first trip that fails: then the next round's trips are smaller and begin
// with other debts, so that one that the store will not take keeps none from
// being paid.
func (o *owed) round() (paid int) {
	for _, batch := range o.batches(o.most) {
		ctx, cancel := context.WithTimeout(context.Background(), o.g.timeout)
		left, err := o.g.pay(ctx, batch)
		cancel()
		o.tell(batch)
		o.remove(batch, left)
		paid += len(batch) - len(left)
		if err != nil {
			if len(left) == 1 && refused(err) {
				left[0].lighten()
			}
			o.postpone(left)
			o.renew()
			return paid
		}
		o.most = min(o.most*2, maxTripItems)
	}
	return paid
}

// batches cuts what is owed into trips of at most so many, each key once in a
// trip.
func (o *owed) batches(most int) (batches [][]*debt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var batch []*debt
	inBatch := make(map[Key]bool)
	for _, d := range o.debts {
		if len(batch) == most || inBatch[d.key] {
			batches, batch = append(batches, batch), nil
			clear(inBatch)
		}
		batch = append(batch, d)
		inBatch[d.key] = true
	}
	return append(batches, batch)
}

// tell tells of the debts that were found to be of an attempt that is fenced.
func (o *owed) tell(batch []*debt) {
	for _, d := range batch {
		if d.fenced && !d.told {
			d.told = true
			o.g.observe(Event{Kind: EventFenced, Scope: d.key.Scope})
		}
	}
}

// refused reports whether the store answered that it will not take a write.
func refused(err error) bool {
	return !errors.Is(err, ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// renew renews the claims whose end is owed, as far as the store lets it.
func (o *owed) renew() {
	for _, batch := range o.batches(maxTripItems) {
		ctx, cancel := context.WithTimeout(context.Background(), o.g.timeout)
		err := o.g.renewOwed(ctx, batch)
		cancel()
		if err != nil {
			return // the store's own trips have told
		}
	}
}

// postpone puts debts that failed behind the others.
func (o *owed) postpone(failed []*debt) {
	last := make(map[*debt]bool, len(failed))
	for _, d := range failed {
		last[d] = true
	}
	o.mu.Lock()
	first := make([]*debt, 0, len(o.debts))
	for _, d := range o.debts {
		if !last[d] {
			first = append(first, d)
		}
	}
	o.debts = append(first, failed...)
	o.mu.Unlock()
	o.most = max(1, o.most/2)
}

// remove takes the debts of a batch but those left off the list and out of the
// journal, and wakes who waits for their keys.
func (o *owed) remove(batch, left []*debt) {
	gone := make(map[*debt]bool, len(batch))
	for _, d := range batch {
		gone[d] = true
	}
	for _, d := range left {
		delete(gone, d)
	}
	if len(gone) == 0 {
		return
	}
	if o.journal != nil {
		o.journal.strike(gone)
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
			delete(o.proven, d.key)
		} else if d.proves() {
			o.proven[d.key]--
		}
	}
	o.debts = kept
	o.mu.Unlock()
	for d := range gone {
		o.g.observe(Event{Kind: EventPaid, Scope: d.key.Scope})
		o.g.wake(d.key.Digest)
	}
}

// close gives what is owed until ctx is over to be paid. Its error says how
// much is left, and where.
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
	o.mu.Lock()
	defer o.mu.Unlock()
	lost := 0
	for _, d := range o.debts {
		if !o.journal.has(d) {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Errorf("the store took %d writes too few: the claims they settle will be found lapsed", lost)
	}
	return nil
}
