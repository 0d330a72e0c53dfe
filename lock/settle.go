package lock

import (
	"context"
	"time"

	"oncegate/internal/bug"
)

// An Ending says how an attempt ended.
type Ending struct {
	// State is StateDone, StateReleased or StateUnknown.
	State State
	// Reason is one of the Reason constants.
	Reason string
	// Answered says that an answer of the app's own came, which proves that the
	// app has ended. Only an unknown ending needs to say so.
	Answered bool
	// Answer is what is kept for replay; for StateDone.
	Answer *Answer
}

// A SettleResult says what became of an Ending.
type SettleResult uint8

const (
	// SettleStands: the store has it.
	SettleStands SettleResult = iota
	// SettleOwed: the store did not answer in time; it is written later.
	SettleOwed
	// SettleFenced: the claim is another's; the ending counts for nothing, but
	// for a 2xx, which is kept and written where the protocol allows it.
	SettleFenced
)

// Settle ends the attempt. It is called once; it returns when the ending is
// durable, or when the store's timeout is over.
func (a *Attempt) Settle(e Ending) SettleResult {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), a.g.timeout)
	defer cancel()
	if bug.Is(bug.UnknownIsDone) && e.State == StateUnknown {
		e.State, e.Answer = StateDone, &Answer{Status: 200}
	}
	a.stop()
	debts := make([]*debt, len(a.claims))
	first, share := a.first(), a.share(&e)
	for i, c := range a.claims {
		part := share
		if c == first {
			part = &e
		}
		debts[i] = a.debt(c, part)
	}
	a.outcome = SettleStands
	left, _ := a.g.pay(ctx, debts) // why some are left, the store's own trips have told
	for i, d := range debts {
		if d.fenced {
			d.told = true
			a.fence()
		}
		if len(left) > 0 {
			held := a.claims[i].rec
			d.held = &held
		}
		a.claims[i].rec = d.standing
	}
	switch {
	case a.fenced:
		a.outcome = SettleFenced
	case len(left) > 0:
		a.outcome = SettleOwed
	}
	a.g.owed.add(left...)
	if a.outcome == SettleStands && e.State == StateDone {
		for _, c := range a.claims {
			a.g.memory.put(&c.rec, sent)
		}
	}
	a.turn.pass()

	a.ended = time.Now()
	close(a.settled)
	for _, c := range a.claims {
		a.g.wake(c.item.Key.Digest)
	}
	a.g.inHand.Add(-1)
	a.g.wg.Done()
	return a.outcome
}

// maxAnswers bounds what the events of one batch keep of its answer, all together.
const maxAnswers = 16 << 20

// share is the ending as the claims have it, but for that of the delivery's first
// event. Each keeps the whole answer, for a batch may be cut anew; where that would
// be too much the first alone does, so that the same batch has the same answer.
func (a *Attempt) share(e *Ending) *Ending {
	if e.State != StateDone || len(a.claims)*len(e.Answer.Body) <= maxAnswers {
		return e
	}
	stub := *e.Answer
	stub.Body, stub.Stub = nil, true
	return &Ending{State: e.State, Reason: ReasonOversized, Answered: e.Answered, Answer: &stub}
}

// settledRecord returns the record that says how an attempt on r ended. It
// has the turn.
func settledRecord(r *Record, e *Ending, a *Attempt) Record {
	next := *r
	next.Version = NewVersion()
	next.State, next.Reason = e.State, e.Reason
	next.Lease, next.RunsUntil = 0, 0
	next.Retain = a.ask.Policy.Retention
	switch e.State {
	case StateDone:
		e.Answer.put(&next)
		next.Request = nil
		if keep := a.ask.Policy.KeepDone; keep != nil && a.ask.keeps() {
			next.Request = Seal(keep(a.ask.Request()))
		}
	case StateUnknown:
		next.Retain = 0
		next.Mark |= MarkDoubt
		if !e.Answered {
			next.RunsUntil = a.appLeft()
			next.Unanswered++
		}
		if next.Request == nil && a.ask.keeps() {
			next.Request = Seal(a.ask.Request())
		}
	}
	return next
}

// debt returns the write that settles one claim.
func (a *Attempt) debt(c *claim, e *Ending) *debt {
	d := &debt{
		key: c.item.Key, token: a.token,
		change:  Change{Expect: c.rec.Version, Next: settledRecord(&c.rec, e, a)},
		lease:   a.ask.Policy.Lease,
		renewed: a.leaseFrom,
	}
	if left := a.appLeft(); left > 0 {
		d.appUntil = time.Now().Add(left)
	}
	return d
}
