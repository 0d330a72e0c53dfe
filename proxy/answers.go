package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/lock"
	"oncegate/verify"
)

// What can be wrong with a delivery before anybody looks into it.
var (
	// ErrMethod: the route takes no such method.
	ErrMethod = errors.New("the route takes no such method")
	// ErrTooLarge: the body is larger than the route's max_body.
	ErrTooLarge = errors.New("the body is larger than the route's max_body")
	// ErrIncomplete: the body ended early, came too slowly, or can't be read.
	ErrIncomplete = errors.New("the body is not complete")
	// ErrHopNamed: the Connection header names a header of the delivery's own.
	ErrHopNamed = errors.New("the Connection header names a header that belongs to the delivery")
	// ErrOverload: as many deliveries, or bytes of them, are in hand as may be.
	ErrOverload = errors.New("too much in hand")
	// ErrTarget: the request target has none of the forms that are passed on.
	ErrTarget = errors.New("the request target can't be passed on")
)

// A verdictError is the Gate's refusal, as an error like the others.
type verdictError struct {
	verdict lock.Verdict
	cause   error
}

func (e *verdictError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return "refused by the claim"
}

func (e *verdictError) Unwrap() error { return e.cause }

// A row says what a failed delivery is answered.
type row struct {
	word   telemetry.Result
	status int
	again  bool // the sender should come again: Retry-After is said
	class  telemetry.ErrorClass
	say    string
}

// rowOf is the table from what went wrong to what is answered. No other place
// names the status of a refusal.
func rowOf(err error) row {
	const request, store = telemetry.ErrorRequest, telemetry.ErrorStore
	var (
		signature *verify.Error
		key       *keyextract.Error
		verdict   *verdictError
		app       *forward.Error
	)
	switch {
	case errors.As(err, &verdict):
		switch verdict.verdict {
		case lock.Busy:
			return row{telemetry.ResultBusy, 503, true, "", "Another delivery of this event is being worked on."}
		case lock.Settling:
			return row{telemetry.ResultSettling, 503, true, "", "The last attempt's outcome is not known yet."}
		case lock.Held:
			return row{telemetry.ResultHeld, 503, true, "", "The last attempt's outcome is not known; an operator must decide."}
		case lock.Mismatch:
			return row{telemetry.ResultMismatch, 409, false, request, "This event key was used with another payload."}
		case lock.Closing:
			return row{telemetry.ResultOverload, 503, true, "", "oncegate is stopping."}
		}
		return row{telemetry.ResultUnavailable, 503, true, store, "The store of claims did not answer in time."}
	case errors.As(err, &signature):
		if signature.Kind == verify.Unavailable {
			return row{telemetry.ResultUnavailable, 503, true, request, "What the signature is checked with is out of reach."}
		}
		return row{telemetry.ResultUnverified, 401, false, request, "The delivery's signature does not hold."}
	case errors.As(err, &key):
		if key.Kind == keyextract.Missing {
			return row{telemetry.ResultUnkeyed, 422, false, request, "The delivery has no usable event key."}
		}
		return row{telemetry.ResultMalformed, 400, false, request, "The delivery can't be read in one certain way."}
	case errors.Is(err, ErrMethod):
		return row{telemetry.ResultMalformed, 405, false, request, "This route takes no such method."}
	case errors.Is(err, ErrTooLarge):
		return row{telemetry.ResultMalformed, 413, false, request, "The delivery is larger than this route takes."}
	case errors.Is(err, ErrIncomplete), errors.Is(err, ErrHopNamed), errors.Is(err, ErrTarget):
		return row{telemetry.ResultMalformed, 400, false, request, "The delivery is malformed or incomplete."}
	case errors.Is(err, ErrOverload):
		return row{telemetry.ResultOverload, 503, true, "", "Too much is in hand."}
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrUnfit), errors.Is(err, lock.ErrSealed), errors.Is(err, lock.ErrFenced):
		return row{telemetry.ResultUnavailable, 503, true, store, "The store of claims did not answer in time."}
	case errors.As(err, &app):
		return rowOfApp(app)
	}
	return row{telemetry.ResultUnavailable, 503, true, store, "The delivery could not be handled now."}
}

// rowOfApp is the part of the table for an app that gave no answer.
func rowOfApp(err *forward.Error) row {
	switch err.Kind {
	case forward.Invalid:
		return row{telemetry.ResultMalformed, 400, false, telemetry.ErrorRequest, "The delivery can't be written as an HTTP request."}
	case forward.Unreached:
		return row{telemetry.ResultUnreached, 502, true, telemetry.ErrorRefused, "The app can't be reached."}
	case forward.Timeout:
		return row{telemetry.ResultUnknown, 504, true, telemetry.ErrorTimeout, "The app did not answer in time."}
	case forward.Upgraded:
		return row{telemetry.ResultUnknown, 502, true, telemetry.ErrorUpgraded, "The app switched protocols, which no delivery asks for."}
	}
	if errors.Is(err, context.Canceled) {
		return row{telemetry.ResultUnknown, 502, true, telemetry.ErrorCanceled, "oncegate is stopping; the app had not answered."}
	}
	return row{telemetry.ResultUnknown, 502, true, telemetry.ErrorBroken, "The app ended the connection without a complete answer."}
}

// A problem is a problem document (RFC 9457).
type problem struct {
	Type   string           `json:"type"`
	Title  string           `json:"title"`
	Status int              `json:"status"`
	Detail string           `json:"detail"`
	Result telemetry.Result `json:"result"`
}

// resultHeader carries the result word on every answer of a route.
const resultHeader = "Oncegate-Result"

// refuse answers a delivery that failed, by the table and what the route's
// provider understands, and returns the status.
func refuse(w http.ResponseWriter, r *route, row row, retryAfter time.Duration) int {
	status := row.status
	if r != nil {
		if s, ok := r.Statuses[string(row.word)]; ok && status != http.StatusMethodNotAllowed && status != http.StatusRequestEntityTooLarge {
			status = s
		}
	}
	header := w.Header()
	clear(header)
	if row.again {
		header.Set("Retry-After", strconv.Itoa(int(max(1, math.Ceil(retryAfter.Seconds())))))
	}
	if status == http.StatusMethodNotAllowed && r != nil {
		header["Allow"] = r.Methods
	}
	header.Set(resultHeader, string(row.word))
	writeProblem(w, status, row)
	return status
}

// writeProblem writes the row as a problem document.
func writeProblem(w http.ResponseWriter, status int, row row) {
	// Strings and a number always marshal.
	body, _ := json.Marshal(problem{"about:blank", http.StatusText(status), status, row.say, row.word})
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The sender may be gone; there is nobody else to tell.
	_, _ = w.Write(body)
}
