package verify

import "fmt"

// A Kind says why a delivery was refused.
type Kind uint8

const (
	// Missing: there is no signature where one has to be.
	Missing Kind = iota + 1
	// Malformed: there is something, and it is no signature.
	Malformed
	// Mismatch: no signature fits any secret.
	Mismatch
	// Stale: the signature fits; its time is too far from the arrival.
	Stale
	// Unavailable: it can't be told now, since a key or a verifier is out of
	// reach.
	Unavailable
)

var kindNames = [...]string{Missing: "missing", Malformed: "malformed", Mismatch: "mismatch", Stale: "stale", Unavailable: "unavailable"}

// String returns the kind's word.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// An Error says why a delivery was refused. It holds no secret, no computed
// signature and nothing of the body.
type Error struct {
	Kind   Kind
	Place  string // where it was looked for: "header Stripe-Signature"
	Detail string // what was wrong there
	Err    error  // the cause, where there is one
}

func (e *Error) Error() string {
	s := "signature " + e.Kind.String()
	if e.Place != "" {
		s += ": " + e.Place
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
