// Package faults breaks things around oncegate's built binary, by seeded chance,
// and judges what came of each event.
//
//	go test ./faults -run TestHistories -seed 7 -store postgres
//
// # A history
//
// A history is the life of one event: from its first delivery to the last
// replay of its answer. Histories run in worlds, many at a time. A world has two
// gates that share a store, an app that is a process of its own, a sender, and,
// where the policy wants one, a witness or an operator. All that a world does by
// chance comes from its seed: how each attempt of each event ends at the app,
// when deliveries are sent and how long their sender waits, and what troubles
// strike when. What a seed can't fix is how processes interleave; so a seed is
// run again, and often, but not necessarily at once, fails again.
//
// # The ledger
//
// The app appends to a file, one write for each line: a run began, had its
// effect, ended. The file outlives the app's death. Nobody asks oncegate what
// happened: the judge reads the ledger, and what senders were answered.
//
// # What is judged
//
// See [Judge]. The rule that nobody runs an event while the app may still be
// working on it needs an app that keeps its limit. This one does: it gives up a
// run before the limit is over, as php-fpm does, and no pause is longer than
// the rest.
package faults
