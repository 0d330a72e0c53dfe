package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oncegate/internal/bug"
)

// A Witness can tell whether an event has had its effect. It may be asked
// concurrently, and bounds its own time.
type Witness interface {
	// Ask asks once. An error says that it is not known.
	Ask(ctx context.Context, q Question) (Testimony, error)
}

// A Question is about one event whose last attempt ended unknown.
type Question struct {
	Key  Key
	Text string // the event key
	// Request is the event's delivery, as the Gate was given it.
	Request []byte
}

// A Testimony is what a witness says.
type Testimony uint8

const (
	// TestifyNothing: it is not known.
	TestifyNothing Testimony = iota
	// TestifyYes: the effect exists.
	TestifyYes
	// TestifyNo: it does not.
	TestifyNo
	// TestifyRetry: this event has no witness; proceed as under RetryUnknown.
	TestifyRetry
	// TestifyHold: this event has no witness; proceed as under HoldUnknown.
	TestifyHold
)

// String returns the testimony's word, for evidence and metrics.
func (t Testimony) String() string {
	return [...]string{"nothing", "yes", "no", "retry", "hold"}[t]
}

const (
	// A witness's answer that settles nothing is believed this long.
	witnessPause = time.Second
	// A witness that answers in this time is heard by those too who don't wait.
	witnessSoon = 100 * time.Millisecond
	// witnessLimit bounds what a witness that doesn't bound itself may take.
	witnessLimit = 30 * time.Second
)

var errNoRequest = errors.New("the event's request was not kept, so the witness can't be asked")

// said is what came of asking a witness about a version of a record.
type said struct {
	testimony Testimony
	version   Version
	at        time.Time
	err       error
}

// testify asks the policy's witness about an unknown claim as it was read, and
// writes what follows. "Yes" is done at once. "No" counts where the app could
// not be running any more when the record was read, and is asked twice; as the
// change expects the version that was read before asking, it counts for that
// alone. Request is the delivery at hand, where the record keeps none.
func (g *Gate) testify(ctx context.Context, r *Record, request []byte, p *Policy) (s said) {
	ctx, cancel := context.WithTimeout(ctx, witnessLimit)
	defer cancel()
	s.version = r.Version
	defer func() { s.at = time.Now() }()
	s.testimony, s.err = g.question(ctx, r, request, p)
	if s.testimony == TestifyNo {
		if r.RunsUntil > 0 && !bug.Is(bug.EarlyNo) {
			return s // it may still come to be
		}
		s.testimony, s.err = g.question(ctx, r, request, p)
	}
	if s.testimony != TestifyYes && s.testimony != TestifyNo {
		return s
	}
	if _, s.err = g.apply(ctx, []Change{{Expect: r.Version, Next: testified(r, s.testimony, p)}}); s.err == nil {
		g.wake(r.Digest)
	}
	return s
}

// question asks the witness once, and tells of it.
func (g *Gate) question(ctx context.Context, r *Record, request []byte, p *Policy) (t Testimony, err error) {
	if r.Request != nil {
		if request, err = Unseal(r.Request); err != nil {
			return TestifyNothing, fmt.Errorf("kept request of %s: %w", r.Digest, err)
		}
	}
	if request == nil {
		return TestifyNothing, errNoRequest
	}
	t, err = p.Witness.Ask(ctx, Question{Key: r.Key, Text: r.Text, Request: request})
	if err != nil {
		t = TestifyNothing
	}
	g.observe(Event{Kind: EventWitness, Scope: r.Scope, Key: r.Key, Text: r.Text, Testimony: t, Err: err})
	return t, err
}

// testified returns the record that the witness's yes or no makes of r.
func testified(r *Record, t Testimony, p *Policy) Record {
	next := *r
	next.Version = NewVersion()
	next.Reason = ReasonWitness
	next.Mark |= MarkWitness
	next.Lease, next.RunsUntil, next.Retain = 0, 0, p.Retention
	if t == TestifyNo {
		next.State = StateReleased
		return next
	}
	next.State = StateDone
	next.Request = nil
	answer := p.WitnessAnswer
	if answer == nil {
		answer = &Answer{Status: 200}
	}
	answer.put(&next)
	return next
}
