package lock

import "time"

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

	// While the end of an attempt is owed, its claim is renewed as what it was:
	// held, with this lease, last renewed then; zero where that was in an earlier
	// process. No held or zero lease: it is not.
	held    *Record
	lease   time.Duration
	renewed time.Time
	// appUntil is when the app can't be working any more; zero: it has ended.
	appUntil time.Time

	saved    uint64 // its number in the journal; zero: it is not there
	standing Record // what stood last
	fenced   bool   // found another's claim
	told     bool   // of that
}

func undoOf(begin *Change, p *Policy) *debt {
	kept := *begin
	kept.Next.Request = nil // what is undone keeps none
	return &debt{key: begin.Next.Key, token: begin.Next.Token, undo: &kept, retention: p.Retention}
}

// appLeft is how long the app may still be working on the attempt.
func (d *debt) appLeft() time.Duration {
	if d.appUntil.IsZero() {
		return 0
	}
	return max(0, time.Until(d.appUntil))
}

// proves reports whether it says that the event is done.
func (d *debt) proves() bool { return d.undo == nil && d.change.Next.State == StateDone }

// due returns the change as it is to be sent now.
func (d *debt) due() Change {
	if n := &d.change.Next; d.undo == nil && n.State == StateUnknown && n.RunsUntil > 0 {
		n.RunsUntil = d.appLeft()
	}
	return d.change
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
	case heldBy(st, d.token) && !late, !st.Exists():
		// No record: the store has forgotten the claim, and nobody took it over.
		d.change.Expect = st.Version
		d.change.Next.Version = NewVersion()
		return debtAgain
	}
	d.fenced = true
	n := &d.change.Next
	if n.State != StateDone || n.Mark&markWords != st.Mark&markWords {
		return debtPaid // it is no proof, or an operator has spoken since
	}
	switch st.State {
	case StateUnknown, StateReleased:
		// A 2xx is proof, however late.
		d.change.Expect = st.Version
		n.Version = NewVersion()
		n.Mark |= MarkLate | st.Mark&MarkDoubt
		n.Attempt = st.Attempt
		n.Unanswered = st.Unanswered
		n.Deliveries = st.Deliveries
		return debtAgain
	case StateRunning:
		return debtWaits
	}
	return debtPaid
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
		return Change{Expect: st.Version, Next: next}, true
	case st.Exists() && st.Version == begin.Expect:
		next := *st
		next.Version = NewVersion()
		return Change{Expect: st.Version, Next: next}, true
	}
	return Change{}, false
}

// lighten drops what is large from a change that the store refuses: rather a
// claim without its answer's body or its request than one that never ends.
func (d *debt) lighten() {
	if d.undo != nil {
		return
	}
	n := &d.change.Next
	if n.AnswerBody != nil {
		n.AnswerBody = nil
		n.AnswerHeader = stubbed(n.AnswerHeader)
		n.Reason = ReasonOversized
	}
	n.Request = nil
}

// renewal returns the change that renews the claim while its end is owed; false
// where it is not time, or no longer the debtor's claim.
func (d *debt) renewal() (Change, bool) {
	if d.undo != nil || d.fenced || d.held == nil || d.lease == 0 || time.Since(d.renewed) < d.lease/3 {
		return Change{}, false
	}
	next := *d.held
	next.Version, next.State, next.Reason = NewVersion(), StateRunning, ""
	next.Lease, next.RunsUntil, next.Retain = d.lease, d.appLeft(), 0
	return Change{Expect: d.change.Expect, Next: next}, true
}
