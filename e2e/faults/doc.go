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
// # Networks
//
// As root, each gate lives in a network namespace of its own, with cables to the
// senders, the store and the app that are pulled out in the middle (see lan): the
// kernel keeps what was sent, and sends it again. Elsewhere wires do what is
// nearest to that, and the log and the figures say so.
//
// # Clocks
//
// Leases and app limits are judged by the store's clock, and in one world of four
// that is put forward and back while histories run: for a server by Debian's
// libfaketime, for SQLite by moving the moments in its file (see [Clock]). A step
// forward takes as much from the app limit; in these worlds the limit has as much to
// spare, so that a step is no reason to run anything again. Under retry it leaps, in
// half of these worlds, past all limits: then a claim may be taken from a live
// attempt, and what is left to judge is that this is announced and counted, and that
// what is done stays done.
//
// # What is judged
//
// See [Judge]. The rule that nobody runs an event while the app may still be
// working on it needs an app that keeps its limit. This one does: it gives up a
// run before the limit is over, as php-fpm does, and no pause is longer than
// the rest.
package faults
