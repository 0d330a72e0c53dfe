package telemetry

import "log/slog"

// A Result is the one word that says how a delivery ended. It is the same word
// in the Oncegate-Result header, the log, the metrics and the spans.
type Result string

// The result words.
const (
	ResultFresh       Result = "fresh"       // the app answered 2xx, and that is stored
	ResultFailed      Result = "failed"      // the app answered anything else
	ResultReplay      Result = "replay"      // the claim was done: the stored answer
	ResultWaited      Result = "waited"      // a running attempt became done: its answer
	ResultBusy        Result = "busy"        // a running attempt was not done within the wait
	ResultSettling    Result = "settling"    // unknown, and will resolve itself
	ResultHeld        Result = "held"        // unknown, and an operator must decide
	ResultUnreached   Result = "unreached"   // nothing was sent to the app
	ResultUnknown     Result = "unknown"     // sent, and no complete answer
	ResultUnverified  Result = "unverified"  // signature missing, wrong or out of time
	ResultUnkeyed     Result = "unkeyed"     // no usable event key: refused
	ResultUnclaimed   Result = "unclaimed"   // forwarded without a claim
	ResultMalformed   Result = "malformed"   // not a whole, well-formed delivery
	ResultMismatch    Result = "mismatch"    // same key, other payload, and the route minds
	ResultUnavailable Result = "unavailable" // the store is out of reach
	ResultOverload    Result = "overload"    // too much in hand
	ResultHandshake   Result = "handshake"   // a provider's handshake, forwarded
	ResultObserved    Result = "observed"    // forwarded and only watched
)

// Results returns all result words.
func Results() []Result {
	return []Result{
		ResultFresh, ResultFailed, ResultReplay, ResultWaited, ResultBusy,
		ResultSettling, ResultHeld, ResultUnreached, ResultUnknown,
		ResultUnverified, ResultUnkeyed, ResultUnclaimed, ResultMalformed,
		ResultMismatch, ResultUnavailable, ResultOverload, ResultHandshake,
		ResultObserved,
	}
}

// level is the log level of a delivery that ended so: a warning where a person
// may have to do something, or would want to know.
func (r Result) level() slog.Level {
	switch r {
	case ResultHeld, ResultUnreached, ResultUnknown, ResultMismatch, ResultUnavailable, ResultOverload:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// An ErrorClass says of what kind a failure was. The set is closed, so that it
// can be a label.
type ErrorClass string

// The classes of errors.
const (
	ErrorNone     ErrorClass = ""
	ErrorRefused  ErrorClass = "refused"  // connection refused, or no route to the app
	ErrorDNS      ErrorClass = "dns"      // the app's name did not resolve
	ErrorTLS      ErrorClass = "tls"      // no TLS connection to the app
	ErrorTimeout  ErrorClass = "timeout"  // a deadline passed
	ErrorBroken   ErrorClass = "broken"   // the connection broke, or the answer was not HTTP
	ErrorUpgraded ErrorClass = "upgraded" // the app answered 101 on a route
	ErrorCanceled ErrorClass = "canceled" // the sender hung up, or oncegate is stopping
	ErrorStore    ErrorClass = "store"    // the store did not answer
	ErrorRequest  ErrorClass = "request"  // the fault lies in the request
	errorOther    ErrorClass = other
)

// other stands for every value outside a closed set, as in OpenTelemetry's
// semantic conventions.
const other = "_OTHER"

// bounded returns e, or _OTHER where e is no known class.
func (e ErrorClass) bounded() ErrorClass {
	switch e {
	case ErrorNone, ErrorRefused, ErrorDNS, ErrorTLS, ErrorTimeout, ErrorBroken,
		ErrorUpgraded, ErrorCanceled, ErrorStore, ErrorRequest:
		return e
	}
	return errorOther
}
