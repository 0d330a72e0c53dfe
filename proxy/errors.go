package proxy

import (
	"errors"
	"fmt"

	"oncegate/lock"
)

// What can be wrong with a request by itself.
var (
	// ErrMethod: the route takes no such method.
	ErrMethod = errors.New("the route takes no such method")
	// ErrTooLarge: the body is larger than the route's max_body.
	ErrTooLarge = errors.New("the body is larger than the route's max_body")
	// ErrIncomplete: the body ended early, came too slowly, or can't be read.
	ErrIncomplete = errors.New("the body is not complete")
	// ErrHopNamed: the Connection header names a header of the delivery's own.
	ErrHopNamed = errors.New("the Connection header names a header that belongs to the delivery")
	// ErrTarget: the request target has none of the forms that are passed on.
	ErrTarget = errors.New("the request target can't be passed on")
	// ErrOverload: as many deliveries, or bytes of them, are in hand as may be.
	ErrOverload = errors.New("too much in hand")
)

// What the Gate can say to a delivery instead of letting it through.
var (
	// ErrBusy: another attempt is running, and the wait is over.
	ErrBusy = errors.New("another attempt is running")
	// ErrSettling: an attempt's outcome is unknown, and will resolve itself.
	ErrSettling = errors.New("the outcome of an attempt is not known yet")
	// ErrHeld: an attempt's outcome is unknown, and an operator must decide.
	ErrHeld = errors.New("the outcome of an attempt is not known; an operator must decide")
	// ErrMismatch: the claim was begun with another payload, and the route minds.
	ErrMismatch = errors.New("the event key was used with another payload")
	// ErrStopping: no attempt begins any more.
	ErrStopping = errors.New("oncegate is stopping")
	// ErrStore: the store did not say whose claim it is. The cause is wrapped.
	ErrStore = errors.New("the store of claims")
)

// refusal makes an error of a decision that is neither Run nor Replay.
func refusal(d *lock.Decision, ask *lock.Ask) error {
	switch d.Verdict {
	case lock.Busy:
		return ErrBusy
	case lock.Settling:
		return ErrSettling
	case lock.Held:
		return ErrHeld
	case lock.Mismatch:
		return fmt.Errorf("%w: sha256 %s, here %s", ErrMismatch, d.Record.Payload, ask.Payload)
	case lock.Closing:
		return ErrStopping
	}
	return fmt.Errorf("%w: %w", ErrStore, d.Err)
}
