package proxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/lock"
	"oncegate/verify"
)

// A row says what a failed delivery is answered.
type row struct {
	word   telemetry.Result
	status int
	again  bool // the sender should come again: Retry-After is said
	class  telemetry.ErrorClass
	say    string
	// unless, if not nil, tells whether the route would rather have the delivery
	// forwarded without a claim: what its sender never sends again must not be
	// lost. Only a failure before anything was sent has it.
	unless func(*route) bool
}

func onMissingKey(r *route) bool  { return r.OnMissingKey == "forward" }
func onOverload(r *route) bool    { return r.OnOverload == "forward" }
func onStoreOutage(r *route) bool { return r.OnStoreOutage == "forward" }

// rowOf is the table from what went wrong to what is answered. No other place
// names the status of a refusal.
func rowOf(err error) row {
	const request, store = telemetry.ErrorRequest, telemetry.ErrorStore
	var (
		signature *verify.Error
		key       *keyextract.Error
		app       *forward.Error
	)
	switch {
	case errors.Is(err, ErrMethod):
		return row{telemetry.ResultMalformed, 405, false, request, "This route takes no such method.", nil}
	case errors.Is(err, ErrTooLarge):
		return row{telemetry.ResultMalformed, 413, false, request, "The delivery is larger than this route takes.", nil}
	case errors.Is(err, forward.ErrLengthRequired):
		return row{telemetry.ResultMalformed, 411, false, request, "This app must be told how long the body is.", nil}
	case errors.Is(err, ErrIncomplete), errors.Is(err, ErrHopNamed), errors.Is(err, ErrTarget), errors.Is(err, forward.ErrRequestBody):
		return row{telemetry.ResultMalformed, 400, false, request, "The request is malformed or incomplete.", nil}
	case errors.Is(err, ErrOverload):
		return row{telemetry.ResultOverload, 503, true, "", "Too much is in hand.", onOverload}
	case errors.Is(err, forward.ErrNoRoom):
		return row{telemetry.ResultOverload, 503, true, "", "Too much is in hand.", nil}
	case errors.Is(err, ErrStopping):
		return row{telemetry.ResultOverload, 503, true, "", "oncegate is stopping.", onOverload}
	case errors.Is(err, ErrBusy):
		return row{telemetry.ResultBusy, 503, true, "", "Another delivery of this event is being worked on.", nil}
	case errors.Is(err, ErrSettling):
		return row{telemetry.ResultSettling, 503, true, "", "The last attempt's outcome is not known yet.", nil}
	case errors.Is(err, ErrHeld):
		return row{telemetry.ResultHeld, 503, true, "", "The last attempt's outcome is not known; an operator must decide.", nil}
	case errors.Is(err, ErrMismatch):
		return row{telemetry.ResultMismatch, 409, false, request, "This event key was used with another payload.", nil}
	case errors.Is(err, lock.ErrSealed):
		// The event is done: to forward it would run it again.
		return row{telemetry.ResultUnavailable, 503, true, store, "The stored answer can't be read.", nil}
	case errors.Is(err, lock.ErrProven):
		return row{telemetry.ResultUnavailable, 503, true, store, "The event is done; its answer can't be stored yet.", nil}
	case errors.Is(err, ErrStore), errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrUnfit):
		return row{telemetry.ResultUnavailable, 503, true, store, "The store of claims did not answer in time.", onStoreOutage}
	case errors.Is(err, lock.ErrFenced):
		return row{telemetry.ResultBusy, 503, true, "", "Another delivery of this event took over.", nil}
	case errors.As(err, &signature) && signature.Kind == verify.Unavailable:
		return row{telemetry.ResultUnavailable, 503, true, request, "What the signature is checked with is out of reach.", nil}
	case errors.As(err, &signature):
		return row{telemetry.ResultUnverified, 401, false, request, "The delivery's signature does not hold.", nil}
	case errors.As(err, &key) && key.Kind == keyextract.Missing:
		return row{telemetry.ResultUnkeyed, 422, false, request, "The delivery has no usable event key.", onMissingKey}
	case errors.As(err, &key):
		return row{telemetry.ResultMalformed, 400, false, request, "The delivery can't be read in one certain way.", nil}
	case errors.As(err, &app):
		return rowOfApp(app)
	}
	return row{telemetry.ResultUnavailable, 503, true, request, "The delivery could not be handled now.", nil}
}

// rowOfApp is the part of the table for an app that gave no answer.
func rowOfApp(err *forward.Error) row {
	switch err.Kind {
	case forward.Invalid:
		return row{telemetry.ResultMalformed, 400, false, telemetry.ErrorRequest, "The request can't be written as HTTP.", nil}
	case forward.Unreached:
		return row{telemetry.ResultUnreached, 502, true, whyUnreached(err), "The app can't be reached.", nil}
	case forward.Timeout:
		return row{telemetry.ResultUnknown, 504, true, telemetry.ErrorTimeout, "The app did not answer in time.", nil}
	case forward.Upgraded:
		return row{telemetry.ResultUnknown, 502, true, telemetry.ErrorUpgraded, "The app switched protocols unasked.", nil}
	}
	if errors.Is(err, context.Canceled) {
		return row{telemetry.ResultUnknown, 502, true, telemetry.ErrorCanceled, "The exchange was cut; the app had not answered.", nil}
	}
	return row{telemetry.ResultUnknown, 502, true, telemetry.ErrorBroken, "The app ended the connection without a complete answer.", nil}
}

// whyUnreached tells the ways apart in which an app can't be reached.
func whyUnreached(err error) telemetry.ErrorClass {
	var (
		name   *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
		slow   net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return telemetry.ErrorCanceled
	case errors.As(err, &name):
		return telemetry.ErrorDNS
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert):
		return telemetry.ErrorTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return telemetry.ErrorTimeout
	}
	return telemetry.ErrorRefused
}

// classOf is the error's class for figures.
func classOf(err error) telemetry.ErrorClass {
	if err == nil {
		return telemetry.ErrorNone
	}
	return rowOf(err).class
}

// gateway reports whether an answer may be that of a gateway in front of the
// app, which says so while the app goes on.
func gateway(status int) bool { return status == 502 || status == 504 }

// statusOn returns the row's status on a route: its provider may understand
// another better. What is wrong with the method or the size has one name only.
func (row *row) statusOn(r *route) int {
	status, ok := r.Statuses[string(row.word)]
	switch row.status {
	case 405, 411, 413:
		ok = false
	}
	if ok {
		return status
	}
	return row.status
}

// allow says in a refusal which methods the route takes.
func (row *row) allow(h http.Header, r *route) {
	if row.status == 405 {
		h.Set("Allow", strings.Join(r.Methods, ", "))
	}
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

// retryAfter is what a sender is told that should come again, where nothing
// better is known.
const retryAfter = 5 * time.Second

// write writes the row as a problem document, or, where the provider takes no
// body, without one.
func (row *row) write(w http.ResponseWriter, status int, retryAfter time.Duration, bare bool) {
	var body []byte
	header := w.Header()
	if !bare {
		// Strings and a number always marshal.
		body, _ = json.Marshal(problem{"about:blank", http.StatusText(status), status, row.say, row.word})
		header.Set("Content-Type", "application/problem+json")
	}
	if row.again {
		header.Set("Retry-After", strconv.Itoa(int(max(1, math.Ceil(retryAfter.Seconds())))))
	}
	header.Set(resultHeader, string(row.word))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The sender may be gone; there is nobody else to tell.
	_, _ = w.Write(body)
}
