package lock

import (
	"context"
	"time"
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
	a.stop()
	debts := make([]*debt, len(a.claims))
	for i, c := range a.claims {
		next := settledRecord(&c.rec, &e, a)
		debts[i] = &debt{key: c.item.Key, token: a.token, change: Change{Expect: c.rec.Version, Next: next}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.g.timeout)
	defer cancel()
	a.outcome = SettleStands
	left := a.g.pay(ctx, debts)
	for i, d := range debts {
		if d.fenced {
			a.fence()
		}
		a.claims[i].rec = d.standing
	}
	switch {
	case a.fenced:
		a.outcome = SettleFenced
	case len(left) > 0:
		a.outcome = SettleOwed
	}
	for _, d := range left {
		a.g.owed.add(d)
	}
	if a.outcome == SettleStands && e.State == StateDone {
		for _, c := range a.claims {
			a.g.memory.put(&c.rec)
		}
	}
	a.mu.Unlock()

	close(a.settled)
	for _, c := range a.claims {
		a.g.wake(c.item.Key.Digest)
	}
	a.g.inHand.Add(-1)
	a.g.wg.Done()
	return a.outcome
}

// settledRecord returns the record that says how an attempt on r ended. It
// holds a.mu.
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
	case StateUnknown:
		next.Retain = 0
		next.Mark |= MarkDoubt
		if !e.Answered {
			next.RunsUntil = a.appLeft()
			next.Unanswered++
		}
		if next.Request == nil && a.ask.Request != nil {
			next.Request = Seal(a.ask.Request())
		}
	}
	return next
}

// A debt is one write that is owed to the store: the end of an attempt on one
// key, or the undoing of a begin whose reply never came. Its change may be sent
// again, however late.
type debt struct {
	key    Key
	token  Token
	change Change
	// undo is the begin that was given up; it is not sent. The change that
	// undoes it is made from what stands.
	undo      *Change
	retention time.Duration // of an undone begin

	standing Record // what stood last
	fenced   bool   // found another's claim
}

func undoOf(begin *Change, p *Policy) *debt {
	return &debt{key: begin.Next.Key, token: begin.Next.Token, undo: begin, retention: p.Retention}
}

// pay writes the debts, and returns those still owed when ctx was over or that
// have to wait for another's attempt to end.
func (g *Gate) pay(ctx context.Context, debts []*debt) (left []*debt) {
	for len(debts) > 0 {
		debts, left = g.payUndos(ctx, debts, left)
		if len(debts) == 0 {
			return left
		}
		batch := make([]Change, len(debts))
		for i, d := range debts {
			batch[i] = d.change
		}
		results, err := g.apply(ctx, batch)
		if err != nil {
			return append(left, debts...)
		}
		var again []*debt
		for i, r := range results {
			switch d := debts[i]; d.next(&r.Standing) {
			case debtAgain:
				again = append(again, d)
			case debtWaits:
				left = append(left, d)
			case debtLate:
				g.observe(Event{Kind: EventLate, Scope: d.key.Scope})
			}
		}
		debts = again
	}
	return left
}

type debtStep uint8

const (
	debtPaid  debtStep = iota // written, or settled otherwise
	debtLate                  // written over another's ending
	debtAgain                 // to be sent in its new form
	debtWaits                 // a 2xx that another's running attempt keeps from being written
)

// next says what the standing record makes of a debt whose change was sent.
func (d *debt) next(st *Record) debtStep {
	d.standing = *st
	late := d.change.Next.Mark&MarkLate != 0
	switch {
	case st.Version == d.change.Next.Version:
		if late {
			return debtLate
		}
		return debtPaid
	case d.undo != nil:
		return debtAgain
	case heldBy(st, d.token) && !late:
		d.change.Expect = st.Version
		d.change.Next.Version = NewVersion()
		return debtAgain
	}
	d.fenced = true
	if d.change.Next.State != StateDone || st.Mark&MarkOperator != 0 {
		return debtPaid
	}
	switch st.State {
	case StateUnknown, StateReleased:
		// A 2xx is proof, however late.
		d.change.Expect = st.Version
		d.change.Next.Version = NewVersion()
		d.change.Next.Mark |= MarkLate | st.Mark&MarkDoubt
		d.change.Next.Attempt = st.Attempt
		d.change.Next.Unanswered = st.Unanswered
		d.change.Next.Deliveries = st.Deliveries
		return debtAgain
	case StateRunning:
		return debtWaits
	}
	return debtPaid
}

// payUndos turns the undos among the debts into changes, by what stands. Those
// that need none are paid; those whose read failed are left.
func (g *Gate) payUndos(ctx context.Context, debts, left []*debt) (rest, stillLeft []*debt) {
	var keys []Key
	var undos []*debt
	for _, d := range debts {
		if d.undo != nil {
			keys, undos = append(keys, d.key), append(undos, d)
		} else {
			rest = append(rest, d)
		}
	}
	if len(undos) == 0 {
		return rest, left
	}
	records, err := g.read(ctx, keys)
	if err != nil {
		return rest, append(left, undos...)
	}
	for i, d := range undos {
		if c, ok := d.undoing(&records[i]); ok {
			d.change = c
			rest = append(rest, d)
		}
	}
	return rest, left
}

// undoing returns the change after which a given-up begin can't stand, even if
// it is still under way.
func (d *debt) undoing(st *Record) (Change, bool) {
	begin := d.undo
	switch {
	case !st.Exists() && begin.Expect == None, heldBy(st, d.token):
		next := begin.Next
		next.Version = NewVersion()
		next.State, next.Reason = StateReleased, ReasonGivenUp
		next.Lease, next.RunsUntil, next.Retain = 0, 0, d.retention
		next.Request = nil
		return Change{Expect: st.Version, Next: next}, true
	case st.Exists() && st.Version == begin.Expect:
		next := *st
		next.Version = NewVersion()
		return Change{Expect: st.Version, Next: next}, true
	}
	return Change{}, false
}
