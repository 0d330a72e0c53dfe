package keyextract

import (
	"errors"
	"fmt"
	"strings"
)

// An ErrorKind says in which way an extraction failed.
type ErrorKind uint8

const (
	// Missing: the delivery is in order, but there is no usable value where one
	// is needed.
	Missing ErrorKind = iota + 1
	// Malformed: the delivery, or what stands at the place, can't be read in
	// one certain way.
	Malformed
)

// ErrMissing and ErrMalformed are what errors.Is finds in an *Error.
var (
	ErrMissing   = errors.New("no usable value")
	ErrMalformed = errors.New("malformed")
)

// An Error is the only kind of error that Extract and Holds return. It never
// holds any of the delivery's own bytes.
type Error struct {
	Kind ErrorKind
	// Place is the part as configured: "json /id".
	Place string
	// Detail says what was found there.
	Detail string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Place, e.sentinel(), e.Detail)
}

// Is makes errors.Is find ErrMissing or ErrMalformed.
func (e *Error) Is(target error) bool { return target == e.sentinel() }

func (e *Error) sentinel() error {
	if e.Kind == Missing {
		return ErrMissing
	}
	return ErrMalformed
}

// malformed makes an error whose place is still to be filled in.
func malformed(format string, args ...any) *Error {
	return &Error{Kind: Malformed, Detail: fmt.Sprintf(format, args...)}
}

// at returns the error with its place, if it has none yet.
func (e *Error) at(place string) *Error {
	if e.Place != "" {
		return e
	}
	return &Error{Kind: e.Kind, Place: place, Detail: e.Detail}
}

// A Fault is one thing that is wrong with a Spec or Condition.
type Fault struct {
	Field string // dotted, from the Spec or Condition on: "key[0].json"; may be ""
	Msg   string
}

// Faults are all that is wrong with a Spec or Condition, in the order of its
// fields. It is the type of the errors that Compile and CompileCondition return.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Msg
		if fault.Field != "" {
			lines[i] = fault.Field + ": " + fault.Msg
		}
	}
	return strings.Join(lines, "\n")
}
