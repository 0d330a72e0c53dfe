// Package proxy is the HTTP leg: it stands in front of the app, takes each
// delivery on a route through the claim protocol, and passes everything else on
// as if it were not there.
//
// # The way of a delivery
//
// A delivery goes one straight way, each step a file with one verb:
//
//	match    which route is this, in whatever form its path was written   paths.go
//	admit    is it plausible from its head; is there room                 admit.go, hand.go
//	read     the whole body, within its cap and time                      read.go
//	verify   is it the provider's                                         way.go
//	extract  which events does it carry                                   way.go
//	claim    the Gate decides: run, replay, or refuse                     claim.go
//	forward  one attempt, on a context of its own                         attempt.go
//	settle   how it ended, before the answer leaves                       attempt.go
//	answer   the app's answer, now or from the store                      stored.go
//
// Nothing is claimed before it is verified, and nothing is answered 2xx unless
// the app has answered 2xx. A step that can't go on returns an error; that one
// error decides result word and status, in one table (answers.go), which is that
// of pass-through traffic too.
//
// # Off the way
//
// What is not claimed, and yet forwarded, is a handshake, or what the route
// would rather have forwarded than refused, or what is only observed. It reaches
// the app once, without oncegate's headers (unclaimed.go, observe.go). Where that
// is because there is no room for its body, the body is streamed and can't have
// been verified; all else has been.
//
// # The sender's leaving
//
// A delivery stays on the goroutine that it came on until all is done; but the
// attempt runs on a context that the sender's leaving doesn't end. A provider
// that hangs up after ten seconds gets its answer on the retry. Only what passes
// through, or is observed, ends with its sender.
//
// # One outcome
//
// Whatever happens, a delivery ends as one telemetry.Outcome, which is recorded
// once.
package proxy
