// Package proxy is the HTTP leg: it stands in front of the app, takes each
// delivery on a route through the claim protocol, and passes everything else on
// as if it were not there.
//
// # The way of a delivery
//
// A delivery goes one straight way, each step a file with one verb:
//
//	match    which route is this, in whatever form its path was written   paths.go
//	admit    is there room, is it plausible from its headers              admit.go
//	read     the whole body, within its cap and time                      read.go
//	verify   is it the provider's                                         way.go
//	extract  which events does it carry                                   claim.go
//	claim    the Gate decides: run, replay, or refuse                     claim.go
//	forward  one attempt, on a context of its own                         attempt.go
//	settle   how it ended, before the answer leaves                       attempt.go
//	answer   the table from what happened to what is said                 answers.go
//
// Nothing is claimed before it is verified, and nothing is answered 2xx unless
// the app has answered 2xx. A step that can't go on returns an error; that one
// error decides result word and status, in one place.
//
// # The sender's leaving
//
// An attempt does not run on the sender's request. A provider that hangs up
// after ten seconds gets its answer on the retry.
//
// # One outcome
//
// Whatever happens, a delivery ends as one telemetry.Outcome, which is recorded
// once.
package proxy
