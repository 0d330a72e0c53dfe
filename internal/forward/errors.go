package forward

import (
	"context"
	"errors"
	"fmt"
)

// A Kind says how an exchange failed.
type Kind string

const (
	// Invalid: the request can't be written as HTTP. Nothing was sent.
	Invalid Kind = "invalid"
	// Unreached: there is no connection to the app (refused, DNS, TLS, too slow
	// to connect), or the request's time was over before the first byte.
	// Nothing was sent.
	Unreached Kind = "unreached"
	// Broken: something was sent, and no complete answer came.
	Broken Kind = "broken"
	// Timeout: something was sent, and the context's deadline passed.
	Timeout Kind = "timeout"
	// Upgraded: the app answered 101, to a request that asked for no upgrade.
	Upgraded Kind = "upgraded"
)

// An Error tells how an exchange with the app failed. It never holds a header's
// value or a byte of a body.
type Error struct {
	Kind Kind
	Err  error
	sent bool
}

func (e *Error) Error() string { return fmt.Sprintf("app %s: %v", e.Kind, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Sent reports whether any byte of the request was written, or may have been.
// False is certain: the app has seen nothing.
func (e *Error) Sent() bool { return e.sent }

var (
	// ErrRequestBody is wrapped where a streamed request's own body could not
	// be read to its end: the fault is the client's, not the app's.
	ErrRequestBody = errors.New("the request's body could not be read")

	// ErrLengthRequired is wrapped where a body of unknown length is too large
	// to be read ahead for an app that must be told its length.
	ErrLengthRequired = errors.New("the body's length has to be said for this app")

	// ErrNoRoom is wrapped where such a body finds no room.
	ErrNoRoom = errors.New("there is no room to read the body ahead")

	errNotHTTP      = errors.New("the answer is not HTTP")
	errHeadTooLarge = errors.New("the answer's head is too large")
	errInterim      = errors.New("too many 1xx answers")
	errStatus       = errors.New("a status below 100")
	errSwitched     = errors.New("the app switched protocols unasked")
	errBodyClosed   = errors.New("read on a closed answer body")
)

func invalid(err error) *Error   { return &Error{Kind: Invalid, Err: err} }
func unreached(err error) *Error { return &Error{Kind: Unreached, Err: err} }

// failure makes the error of an exchange that had a connection. A context that
// ended explains whatever the socket said afterwards.
func failure(ctx context.Context, sent bool, err error) *Error {
	if ended := ctx.Err(); ended != nil {
		err = context.Cause(ctx)
		if sent && errors.Is(ended, context.DeadlineExceeded) {
			return &Error{Kind: Timeout, Err: err, sent: true}
		}
	}
	if !sent {
		return unreached(err)
	}
	if errors.Is(err, errSwitched) {
		return &Error{Kind: Upgraded, Err: err, sent: true}
	}
	return &Error{Kind: Broken, Err: err, sent: true}
}
