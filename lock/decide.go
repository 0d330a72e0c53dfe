package lock

import (
	"time"

	"oncegate/internal/bug"
)

// OnUnknown is a route's policy for a claim whose last attempt may have taken
// effect.
type OnUnknown uint8

const (
	// RetryUnknown lets the next delivery be the next attempt, once the app
	// can't be running any more; it is announced and counted as a possible
	// second run.
	RetryUnknown OnUnknown = iota
	// HoldUnknown refuses deliveries until an operator decides.
	HoldUnknown
	// WitnessUnknown asks the policy's Witness: an effect that it finds makes the
	// claim done, one that it doesn't find released. While it can't tell,
	// deliveries are refused.
	WitnessUnknown
)

// A Policy is what a route says about its claims. It is not changed while any
// attempt uses it.
type Policy struct {
	// Lease is how long a running claim may go without renewal; at least 1 s.
	Lease time.Duration
	// AppLimit is the longest the app can work on one request, its queue
	// included; zero: the app ends with its connection.
	AppLimit time.Duration
	// Retention is how long done and released claims are kept.
	Retention time.Duration
	OnUnknown OnUnknown
	// Witness is asked under WitnessUnknown.
	Witness Witness
	// WitnessAnswer is what deliveries get of an event whose effect a witness
	// found. Nil: 200 and no body.
	WitnessAnswer *Answer
	// Attempts turns RetryUnknown into HoldUnknown after that many endings
	// without an answer of the app's own; zero: never.
	Attempts int
	// RefuseMismatch refuses a delivery whose payload differs from the one
	// that the claim was begun with.
	RefuseMismatch bool
	// KeepRequest stores the request from begin on, and drops it when done.
	KeepRequest bool
	// KeepDone says what of the request is kept when it is done. Nil: nothing.
	KeepDone func(request []byte) []byte
}

// What a record means for a delivery.
type meaning uint8

const (
	meansBegin    meaning = iota // the delivery may be the next attempt, over this version
	meansReplay                  // the answer is there
	meansWait                    // an attempt is running, under a live lease
	meansLapsed                  // the lease is over: unknown is to be written first
	meansSettling                // unknown, and the app may still be running
	meansHeld                    // unknown, and an operator must decide
	meansWitness                 // unknown, and a witness is to be asked
)

// decide says what a record means for a delivery, and for how long at least
// that can't change by the passing of time alone.
func decide(r *Record, p *Policy) (meaning, time.Duration) {
	switch r.State {
	case StateRunning:
		if r.Lease > 0 {
			return meansWait, r.Lease
		}
		return meansLapsed, 0
	case StateDone:
		if bug.Is(bug.DoneAgain) {
			return meansBegin, 0
		}
		return meansReplay, 0
	case StateUnknown:
		if p.OnUnknown == WitnessUnknown {
			return meansWitness, max(0, r.RunsUntil)
		}
		if p.OnUnknown == HoldUnknown && bug.Is(bug.HoldRuns) {
			return meansBegin, 0
		}
		if bug.Is(bug.NeverAgain) {
			return meansHeld, 0
		}
		if p.OnUnknown == HoldUnknown || p.Attempts > 0 && r.Unanswered >= p.Attempts {
			return meansHeld, 0
		}
		if r.RunsUntil > 0 && !bug.Is(bug.BlindTakeover) {
			return meansSettling, r.RunsUntil
		}
		return meansBegin, 0
	}
	return meansBegin, 0
}

// lapsed returns the record that says of a running one that its lease ran out.
// Lease and app limit stand as they were.
func lapsed(r *Record) Record {
	next := *r
	next.Version = NewVersion()
	next.State, next.Reason = StateUnknown, ReasonLapsed
	next.Unanswered++
	next.Mark |= MarkDoubt
	next.Retain = 0
	next.Lease = 0
	return next
}

// begun returns the record of the attempt that follows r, which may be absent.
func begun(r *Record, item Item, ask *Ask, token Token) Record {
	next := Record{
		Key:        item.Key,
		Text:       item.Text,
		Role:       RoleEvent,
		State:      StateRunning,
		Attempt:    r.Attempt + 1,
		Token:      token,
		Version:    NewVersion(),
		Lease:      ask.Policy.Lease,
		RunsUntil:  ask.Policy.Lease + ask.Policy.AppLimit,
		Deliveries: r.Deliveries + 1,
		Payload:    ask.Payload,
		Tags:       ask.Tags,
	}
	if bug.Is(bug.SameNumber) {
		next.Attempt = max(1, r.Attempt)
	}
	next.Mark = r.Mark & markWords
	if r.State != StateTombstone {
		next.Mark |= r.Mark & MarkDoubt
		next.Unanswered = r.Unanswered
	}
	if ask.Policy.KeepRequest && ask.keeps() {
		next.Request = Seal(ask.Request())
	}
	return next
}
