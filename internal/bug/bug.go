// Package bug holds deliberate mistakes, each of which breaks one of the rules
// that the tests hold. They are there only in a binary that is built with the
// tag oncegate_bugs, and then only the one that ONCEGATE_BUG names: e2e/faults
// shows by them that what it judges can fail. In every other binary [Is] is the
// constant false, and the compiler leaves them out.
package bug

// A Bug is the name of a mistake.
type Bug string

// The mistakes, and what each must be found to break.
const (
	// UnknownIsDone settles an attempt without a known outcome as done: events
	// are acknowledged that had no effect.
	UnknownIsDone Bug = "unknown-is-done"
	// NeverAgain holds what is unknown although the policy is retry: events are
	// lost.
	NeverAgain Bug = "never-again"
	// HoldRuns runs what is on hold.
	HoldRuns Bug = "hold-runs"
	// EarlyNo believes a witness's "no" while the app may still be working.
	EarlyNo Bug = "early-no"
	// LateRenewal lets an attempt renew its claim after it was settled, which
	// turns done back into running: what comparing only the token leads to.
	// Events are lost.
	LateRenewal Bug = "late-renewal"
	// DoneAgain runs what is done.
	DoneAgain Bug = "done-again"
	// SameNumber gives a later attempt the number of the one before.
	SameNumber Bug = "same-number"
	// Uncounted counts no possible second run.
	Uncounted Bug = "uncounted"
	// BlindTakeover takes an unknown claim over although the app may still be
	// working on it.
	BlindTakeover Bug = "blind-takeover"
	// EmptyReplay replays the status without the body.
	EmptyReplay Bug = "empty-replay"
)

// Tag builds the mistakes in, and Variable names the one to make.
const (
	Tag      = "oncegate_bugs"
	Variable = "ONCEGATE_BUG"
)
