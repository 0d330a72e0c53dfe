package lock

import (
	"bytes"
	"slices"
	"time"
)

// An Item is one event of a delivery.
type Item struct {
	Key  Key
	Text string // the event key
}

// An Ask is one delivery's question: may it go through to the app? It is not
// changed once it is asked.
type Ask struct {
	// Items holds the delivery's different events, in its own order; at least one.
	Items []Item
	// Guard is a second key of a delivery of one event, such as its body's
	// digest. Where it is known to stand for another event, the delivery is that
	// event's. An empty text: none.
	Guard  Item
	Policy *Policy
	// Payload is the digest of what the delivery carries.
	Payload Digest
	Tags    []string
	// Request returns the delivery, for a witness and as it is kept for later; nil:
	// there is none.
	Request func() []byte
	// Unkept: it is too large for each of its events to keep it.
	Unkept bool
	// Wait is the budget for waiting on other attempts, from the call of Begin.
	Wait time.Duration
	// Follow makes of the delivery a mere duplicate: it gets the answer of
	// others' attempts and never becomes one.
	Follow bool
}

// keeps reports whether the delivery can be kept.
func (a *Ask) keeps() bool { return a.Request != nil && !a.Unkept }

// inOrder returns the items in digest order, the order in which sets of claims
// are begun.
func (a *Ask) inOrder() []Item {
	if len(a.Items) == 1 {
		return a.Items
	}
	items := slices.Clone(a.Items)
	slices.SortFunc(items, func(x, y Item) int {
		return bytes.Compare(x.Key.Digest[:], y.Key.Digest[:])
	})
	return items
}

// A Verdict is the Gate's word on a delivery.
type Verdict uint8

const (
	// Run: this delivery is the next attempt. Decision.Attempt must be settled.
	Run Verdict = iota
	// Replay: the answer is there.
	Replay
	// Busy: an attempt is running, and the wait is over.
	Busy
	// Settling: the outcome of an attempt is unknown, and will become known
	// without anybody's doing.
	Settling
	// Held: the outcome is unknown, and an operator must decide.
	Held
	// Mismatch: the claim was begun with another payload, and the route minds.
	Mismatch
	// Unavailable: the store did not answer in time.
	Unavailable
	// Closing: the Gate begins no more attempts, and none that runs is waited for.
	Closing
)

// A Decision is the Gate's answer to an Ask.
type Decision struct {
	Verdict Verdict
	Attempt *Attempt // where the verdict is Run
	// Record is what stands for the delivery's first event; zero where that is
	// not known.
	Record Record
	Answer *Answer // where the verdict is Replay
	// Waited says that the delivery waited for another's attempt.
	Waited bool
	// Differs says that the claim was begun with another payload.
	Differs bool
	// RetryAfter is when the sender may come again, where it must.
	RetryAfter time.Duration
	// Err says what kept the store from answering, where the verdict is Unavailable.
	Err error

	// notBefore is set where nothing can come of waiting for less.
	notBefore time.Time
}

// differs reports whether the claim was begun with another payload than the
// ask carries. Of a set that can't be said: a batch may be cut anew.
func (a *Ask) differs(r *Record) bool {
	return len(a.Items) == 1 && r.Exists() && r.Payload != a.Payload
}

// mismatch reports whether the ask must be refused for its payload. A released
// claim took no effect, so the next payload may be another.
func (a *Ask) mismatch(r *Record) bool {
	if !a.Policy.RefuseMismatch || !a.differs(r) {
		return false
	}
	return r.State == StateRunning || r.State == StateDone || r.State == StateUnknown
}
