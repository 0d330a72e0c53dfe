package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// A trip carries at most this many changes or keys of several callers, or this
	// many of one, and about as many bytes.
	maxTripItems = 256
	maxCallItems = 1024
	maxTripBytes = 4 << 20
)

// Group returns a store that gathers: while one round trip is under way, what
// others ask in the meantime waits and travels together on the next one, so
// that many settles share one commit. An idle store is asked at once, by the
// caller itself. Reads and writes travel apart, and among writes those that
// change a record go before those that make one: so neither who waits nor who
// begins holds up those who renew and settle. What is too much for one trip, such
// as the claims of a large batch, makes several, one after the other.
//
// A trip runs on a context of its own, bounded by timeout: a caller that goes
// away neither breaks a connection nor fails the others. Where the store
// refuses a trip of several callers, each is tried alone: one's bad change is
// not the others' failure.
func Group(store Store, timeout time.Duration, observe func(Event)) *Grouped {
	g := &Grouped{store: store}
	g.writes = lane[Change, Result]{
		timeout: timeout, observe: observe, kind: EventWriteTrip,
		trip:   store.Apply,
		key:    func(c *Change) *Key { return &c.Next.Key },
		urgent: func(c *Change) bool { return c.Expect != None },
		size:   changeSize,
	}
	g.reads = lane[Key, Record]{
		timeout: timeout, observe: observe, kind: EventReadTrip,
		trip:   store.Read,
		urgent: func(*Key) bool { return false },
		size:   func(*Key) int { return 64 },
	}
	return g
}

// Grouped is the Store that Group returns.
type Grouped struct {
	store  Store
	writes lane[Change, Result]
	reads  lane[Key, Record]
}

// Apply is Store.Apply.
func (g *Grouped) Apply(ctx context.Context, batch []Change) ([]Result, error) {
	return g.writes.do(ctx, batch)
}

// Read is Store.Read.
func (g *Grouped) Read(ctx context.Context, keys []Key) ([]Record, error) {
	return g.reads.do(ctx, keys)
}

// Close closes the store below.
func (g *Grouped) Close() error { return g.store.Close() }

// A lane carries calls of one kind, one trip at a time.
type lane[Q, A any] struct {
	trip    func(context.Context, []Q) ([]A, error)
	key     func(*Q) *Key // where a key may not occur twice in a trip
	urgent  func(*Q) bool // those that go first
	size    func(*Q) int
	timeout time.Duration
	observe func(Event)
	kind    EventKind

	mu      sync.Mutex // guards what follows, and batch of every waiting call
	busy    bool
	waiting []*call[Q, A]
}

// A call is one caller's part of a trip.
type call[Q, A any] struct {
	asked   []Q
	urgent  bool
	until   time.Time // when the caller goes
	answers []A
	err     error
	done    chan struct{} // closed when answers or err are set
	lead    chan struct{} // closed when batch is set: this call is to make the next trip
	batch   []*call[Q, A]
}

// do gets the answers, in as many trips as that takes.
func (l *lane[Q, A]) do(ctx context.Context, asked []Q) ([]A, error) {
	n := fitting(asked, l.size)
	if n == len(asked) {
		return l.join(ctx, asked)
	}
	answers := make([]A, 0, len(asked))
	for ; len(asked) > 0; n = fitting(asked, l.size) {
		some, err := l.join(ctx, asked[:n])
		if err != nil {
			return nil, err
		}
		answers, asked = append(answers, some...), asked[n:]
	}
	return answers, nil
}

// fitting is how many of the first of asked fit one trip: one at least.
func fitting[Q any](asked []Q, size func(*Q) int) (n int) {
	for bytes := 0; n < min(len(asked), maxCallItems); n++ {
		if bytes += size(&asked[n]); n > 0 && bytes > maxTripBytes {
			return n
		}
	}
	return n
}

// changeSize is about how many bytes of a trip a change takes.
func changeSize(c *Change) int {
	r := &c.Next
	return 512 + len(r.Text) + len(r.AnswerHeader) + len(r.AnswerBody) + len(r.Request)
}

// join makes a trip, or takes part in one.
func (l *lane[Q, A]) join(ctx context.Context, asked []Q) ([]A, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &call[Q, A]{asked: asked, until: time.Now().Add(l.timeout)}
	if d, ok := ctx.Deadline(); ok && d.Before(c.until) {
		c.until = d
	}
	l.mu.Lock()
	if !l.busy {
		l.busy = true
		l.mu.Unlock()
		c.batch = []*call[Q, A]{c}
		l.travel(ctx, c)
		return c.answers, c.err
	}
	c.done, c.lead = make(chan struct{}), make(chan struct{})
	c.urgent = l.urgent(&asked[0])
	l.waiting = append(l.waiting, c)
	l.mu.Unlock()

	select {
	case <-c.done:
		return c.answers, c.err
	case <-c.lead:
	case <-ctx.Done():
		if !l.leave(c) {
			return nil, ctx.Err()
		}
		// Others already count on this call to make their trip.
	}
	l.travel(ctx, c)
	return c.answers, c.err
}

// leave takes c out of those who wait. It reports whether c must lead a trip
// all the same.
func (l *lane[Q, A]) leave(c *call[Q, A]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == c {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return false
		}
	}
	return c.batch != nil
}

// travel makes the trip of c's batch and hands the lane on.
func (l *lane[Q, A]) travel(ctx context.Context, c *call[Q, A]) {
	asked := c.asked
	if len(c.batch) > 1 {
		asked = make([]Q, 0, len(c.batch))
		for _, m := range c.batch {
			asked = append(asked, m.asked...)
		}
	}
	trip, cancel := context.WithDeadline(context.WithoutCancel(ctx), c.until)
	defer cancel()
	answers, err := l.goOnce(trip, asked)
	alone := err != nil && len(c.batch) > 1 && !errors.Is(err, ErrUnavailable) && trip.Err() == nil
	for _, m := range c.batch {
		switch {
		case alone:
			m.answers, m.err = l.goOnce(trip, m.asked)
		case err != nil:
			m.err = err
		default:
			m.answers, answers = answers[:len(m.asked):len(m.asked)], answers[len(m.asked):]
		}
	}
	l.handOn()
	for _, m := range c.batch {
		if m.done != nil {
			close(m.done)
		}
	}
}

// goOnce makes one trip and tells of it.
func (l *lane[Q, A]) goOnce(ctx context.Context, asked []Q) ([]A, error) {
	start := time.Now()
	answers, err := l.trip(ctx, asked)
	l.observe(Event{Kind: l.kind, Took: time.Since(start), N: len(asked)})
	if err != nil {
		l.observe(Event{Kind: EventStoreError, Err: err})
	}
	return answers, err
}

// handOn sends off the next trip. Its leader is who stays longest, so that
// nobody's going ends it for the others.
func (l *lane[Q, A]) handOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy = false
		return
	}
	batch := l.choose()
	leader := batch[0]
	for _, c := range batch {
		if c.until.After(leader.until) {
			leader = c
		}
	}
	leader.batch = batch
	close(leader.lead)
}

// choose takes the calls of the next trip from those who wait: as many as fit,
// the urgent ones first. The caller holds mu.
func (l *lane[Q, A]) choose() (batch []*call[Q, A]) {
	taken := make(map[Key]bool)
	items, bytes := 0, 0
	for _, urgent := range [2]bool{true, false} {
		var later []*call[Q, A]
		for _, c := range l.waiting {
			if c.urgent != urgent {
				later = append(later, c)
				continue
			}
			n := 0
			for i := range c.asked {
				n += l.size(&c.asked[i])
			}
			full := items > 0 && (items+len(c.asked) > maxTripItems || bytes+n > maxTripBytes)
			if full || l.clash(taken, c.asked) {
				later = append(later, c)
				continue
			}
			items += len(c.asked)
			bytes += n
			batch = append(batch, c)
		}
		l.waiting = later
	}
	return batch
}

// clash reports whether a key of asked is taken, and takes all of them if not.
func (l *lane[Q, A]) clash(taken map[Key]bool, asked []Q) bool {
	if l.key == nil {
		return false
	}
	for i := range asked {
		if taken[*l.key(&asked[i])] {
			return true
		}
	}
	for i := range asked {
		taken[*l.key(&asked[i])] = true
	}
	return false
}
