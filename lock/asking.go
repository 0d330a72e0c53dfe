package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrProven says that the store can't be asked about an event that has had its
// effect: the 2xx is still to be written. It must not run again for that.
var ErrProven = errors.New("the event is done, and the store has not taken that yet")

const (
	// A question is decided in this many writes or not at all: each round but
	// the last lost a race against another process.
	maxRounds = 16
	// heldRetry is what a sender is told whose event waits for an operator.
	heldRetry = 5 * time.Minute
	// owedRetry is what a sender is told while this process owes the store the
	// outcome of the event's last attempt.
	owedRetry = 2 * time.Second
)

// doubtful returns the first claim that a witness is to be asked about now; nil
// if there is none.
func (q *asking) doubtful(p *Policy) *claim {
	for _, c := range q.claims {
		if c.mine {
			continue
		}
		m, _ := c.means(p)
		if m == meansWitness && (c.heard.version != c.rec.Version || time.Since(c.heard.at) >= witnessPause) {
			return c
		}
	}
	return nil
}

// asking puts a set's question to the store. It belongs to one flight.
type asking struct {
	g      *Gate
	claims []*claim // in digest order
	hold   *Attempt // owns the claims that are mine; nil where none is
	// awaited is what the set was found to wait for; nil: it must be looked at whole.
	awaited *claim
	// closing says that the Gate was, when it was asked: nothing begins, and only
	// what another runs is waited for.
	closing bool
}

func newAsking(g *Gate, items []Item) *asking {
	q := &asking{g: g, claims: make([]*claim, len(items))}
	for i, it := range items {
		q.claims[i] = &claim{item: it}
	}
	return q
}

// ask returns Run with an attempt that holds every item not yet done, or the
// reason why there is none. For Busy and Settling the claims before the first
// one that runs elsewhere stay held (keeping all deadlocks, releasing all
// livelocks).
func (q *asking) ask(ask *Ask) Decision {
	ctx, cancel := context.WithTimeout(context.Background(), q.g.timeout)
	defer cancel()
	if q.hold != nil && (q.hold.ask != ask || q.hold.isFenced()) {
		q.drop(ctx, 0)
	}
	if q.closing = q.g.isClosing(); q.closing {
		q.drop(ctx, 0)
	}
	if q.g.life.Err() != nil {
		return closing()
	}
	if q.owes() {
		// What is owed waits for the store; the sender waits with it only if the
		// store answers.
		if _, err := q.g.read(ctx, q.keys()); err != nil {
			if q.proven() {
				err = fmt.Errorf("%w: %w", ErrProven, err)
			}
			return unavailable(err)
		}
		return Decision{Verdict: Settling, RetryAfter: owedRetry}
	}
	if q.g.owed.full() {
		q.drop(ctx, 0)
		return unavailable(errOwesTooMuch)
	}
	waits, err := q.stillWaits(ctx, ask.Policy)
	if err == nil && !waits {
		err = q.refresh(ctx, ask.Follow || q.closing)
	}
	if err != nil {
		q.drop(ctx, 0)
		return unavailable(err)
	}
	for range maxRounds {
		if len(q.claims) == 1 && !q.claims[0].mine && ask.mismatch(&q.claims[0].rec) {
			return Decision{Verdict: Mismatch, Record: q.claims[0].rec}
		}
		batch, of := q.changes(ask)
		if len(batch) == 0 {
			return q.conclude(ctx, ask)
		}
		if err := q.write(ctx, ask, batch, of); err != nil {
			q.drop(ctx, 0)
			return unavailable(err)
		}
	}
	q.drop(ctx, 0)
	return Decision{Verdict: Busy, RetryAfter: time.Second}
}

// closing is what a delivery is told that could go on only if something began here.
func closing() Decision { return Decision{Verdict: Closing, RetryAfter: time.Second} }

func unavailable(err error) Decision {
	return Decision{Verdict: Unavailable, Err: err, RetryAfter: owedRetry}
}

// owes reports whether this process still owes the store a write on one of the
// keys: until that stands it begins no attempt on them.
func (q *asking) owes() bool {
	for _, c := range q.claims {
		if q.g.owed.holds(c.item.Key) {
			return true
		}
	}
	return false
}

// proven reports whether this process knows of all events that they are done.
func (q *asking) proven() bool {
	return !slices.ContainsFunc(q.claims, func(c *claim) bool {
		return !(c.known && c.rec.State == StateDone) && !q.g.owed.proves(c.item.Key)
	})
}

func (q *asking) keys() []Key {
	keys := make([]Key, len(q.claims))
	for i, c := range q.claims {
		keys[i] = c.item.Key
	}
	return keys
}

// conclude says what the claims, which now need no write, mean together.
func (q *asking) conclude(ctx context.Context, ask *Ask) Decision {
	waits, held, mine := -1, -1, false
	var d Decision
	for i, c := range q.claims {
		if c.mine {
			mine = true
			continue
		}
		switch m, until := c.means(ask.Policy); m {
		case meansReplay:
		case meansHeld:
			held = i
		default:
			if q.closing && m != meansWait {
				return closing()
			}
			if waits >= 0 {
				continue
			}
			waits = i
			d = Decision{Verdict: Busy, Record: c.rec, RetryAfter: until}
			if m == meansSettling {
				d.Verdict = Settling
				d.notBefore = time.Now().Add(until)
			}
			if m == meansWitness {
				d.Verdict = Settling
				d.RetryAfter = max(until, owedRetry)
			}
		}
	}
	switch {
	case held >= 0:
		q.drop(ctx, 0)
		return Decision{Verdict: Held, Record: q.claims[held].rec, RetryAfter: heldRetry}
	case waits >= 0:
		q.drop(ctx, waits)
		for _, c := range q.claims {
			c.known = c.mine
		}
		q.awaited = q.claims[waits]
		return d
	case mine:
		a := q.hold
		q.hold, q.awaited = nil, nil
		a.begin()
		return Decision{Verdict: Run, Attempt: a, Record: a.began()}
	}
	q.drop(ctx, 0)
	return q.replay(ask)
}

// replay returns the answer of the delivery's first item.
func (q *asking) replay(ask *Ask) Decision {
	for _, c := range q.claims {
		if c.item.Key == ask.Items[0].Key {
			q.g.memory.put(&c.rec, c.at)
			return replayOf(&c.rec)
		}
	}
	return Decision{Verdict: Busy, RetryAfter: time.Second} // a member of the same set has the same keys
}

// drop gives up the claims that are mine, from the i-th on; with the first the
// attempt ends.
func (q *asking) drop(ctx context.Context, i int) {
	if q.hold == nil {
		return
	}
	q.awaited = nil
	var given []*claim
	for _, c := range q.claims[i:] {
		if c.mine {
			given = append(given, c)
			c.mine, c.known = false, false
		}
	}
	q.hold.yield(ctx, given)
	if q.hold.empty() {
		q.hold.abandon()
		q.hold = nil
	}
}

// learn takes over what the attempt's settle left standing.
func (q *asking) learn(a *Attempt) {
	for _, c := range q.claims {
		if c.mine {
			c.mine, c.known = false, a.outcome == SettleStands
		} else {
			c.known = c.known && c.rec.State == StateDone
		}
	}
}
