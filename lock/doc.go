// Package lock lets each event take effect once. It is the claim protocol: who
// may forward an event to the app, who waits, and what is known afterwards.
//
// # Begin, perform, settle
//
// A delivery asks the Gate. One of all that carry the same event gets an
// Attempt, forwards it to the app, and settles the attempt with how it ended;
// the others get the stored answer.
//
//	d := gate.Begin(ctx, &lock.Ask{Items: items, Policy: policy, Payload: sum, Wait: wait})
//	if d.Verdict == lock.Run {
//		if err := d.Attempt.Start(); err == nil { // right before the first byte
//			answer := forward(d.Attempt.Context())
//			d.Attempt.Settle(lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: answer})
//		}
//	}
//
// # The register
//
// What is known of an event is one Record in a Store, a compare-and-set
// register: a change names the version it expects, and nothing else decides.
// The insert is the lock. Because every write makes a new version, a change can
// be sent again when its reply was lost, and a write that comes late finds its
// version gone. Comparing the token alone would not do: a late renewal would
// turn done back into running.
//
// # Leases and doubt
//
// A running claim lives by a lease that its holder renews. A lease that runs
// out says only that the holder was not heard of: the claim becomes unknown,
// never free. Unknown is a state of its own, for an attempt that may have taken
// effect and has no 2xx, and the route's Policy says what follows from it. While
// the app may still be working on an attempt (RunsUntil), nobody makes another.
//
// # What is owed
//
// When the store does not take an attempt's ending in time, the Gate keeps it
// and writes it later; it also undoes begins whose reply never came, which may
// still be under way. While it owes a write on a key, it begins nothing there.
//
// # Few questions
//
// A flight makes one question of a thousand duplicates in one process. A group
// makes one round trip of what many flights ask at the same time. A memory of
// done claims answers a storm without asking.
package lock
