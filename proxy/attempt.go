package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"oncegate/internal/delivery"
	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// A reply is how an attempt ended, for the delivery that made it.
type reply struct {
	err     error // no complete answer came, or none was asked for
	settled lock.SettleResult
	// The app's answer, where there is one. Rest is what its body goes on with
	// where it is too large to be kept; whoever takes the reply reads it to its
	// end, then calls done.
	status int
	header http.Header
	body   []byte
	rest   io.Reader
	done   context.CancelFunc

	upstream, settle time.Duration
}

// attempt forwards a claimed delivery and settles how that ended. It runs on a
// goroutine of its own and outlives the sender: the reply is handed over, or, if
// gone is closed first, what is left of the answer is read to its end.
func (h *Handler) attempt(ctx context.Context, r *route, d *delivery.Delivery, keys []string, a *lock.Attempt, taken chan<- reply, gone <-chan struct{}) {
	// The attempt's life ends the exchange at the drain deadline. The sender's
	// context gives only its values (the trace).
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.UpstreamTimeout)
	stop := context.AfterFunc(a.Context(), cancel)
	var release context.CancelFunc = func() { stop(); cancel() }

	rep := h.perform(ctx, r, d, keys, a)
	if rep.rest == nil {
		release()
		rep.done = func() {}
	} else {
		rep.done = release
	}
	select {
	case taken <- rep:
	case <-gone:
		if rep.rest != nil {
			// A break now changes nothing: the attempt is settled.
			_ = drain(io.Discard, rep.rest)
		}
		rep.done()
	}
}

// perform forwards the delivery once and settles the attempt.
func (h *Handler) perform(ctx context.Context, r *route, d *delivery.Delivery, keys []string, a *lock.Attempt) (rep reply) {
	number := a.Number()
	header := forward.EndToEnd(d.Header)
	header["Oncegate-Event"] = []string{eventHeader(r.Scope, keys)}
	header["Oncegate-Attempt"] = []string{strconv.Itoa(number)}
	ctx, span := h.tel.StartClient(ctx, r.Name, d.Method, number)
	span.Inject(header)

	start := time.Now()
	answer, err := r.app.Forward(ctx, &forward.Request{
		Method: d.Method, Target: d.Target, Host: d.Host, Header: header, Body: d.Body,
		BeforeFirstByte: a.Start,
	})
	if err == nil {
		rep.status, rep.header = answer.Status, answer.Header
		rep.body, rep.rest, err = upTo(answer.Body, r.MaxAnswer)
	}
	rep.upstream = time.Since(start)
	rep.err = err
	span.End(ctx, rep.status, classOf(err))

	start = time.Now()
	rep.settled = a.Settle(r.ending(&rep, a.Context().Err() != nil))
	rep.settle = time.Since(start)
	return rep
}

// upTo reads a body to its end, or to the limit; then rest goes on with it.
func upTo(body io.ReadCloser, limit int64) (read []byte, rest io.Reader, err error) {
	read, err = io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(read)) > limit {
		return read, body, nil
	}
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	return read, nil, err
}

// ending says what an attempt's end means for its claims.
func (r *route) ending(rep *reply, cut bool) lock.Ending {
	var app *forward.Error
	switch {
	case rep.err != nil && errors.As(rep.err, &app) && app.Sent():
		reason := lock.ReasonBroken
		switch {
		case cut:
			reason = lock.ReasonShutdown
		case app.Kind == forward.Timeout:
			reason = lock.ReasonTimeout
		case app.Kind == forward.Upgraded:
			reason = lock.ReasonUpgraded
		}
		return lock.Ending{State: lock.StateUnknown, Reason: reason}
	case rep.err != nil:
		return lock.Ending{State: lock.StateReleased, Reason: lock.ReasonUnsent}
	case rep.status >= 200 && rep.status < 300:
		if rep.rest != nil {
			return lock.Ending{State: lock.StateDone, Reason: lock.ReasonOversized, Answer: keep(rep.status, rep.header, nil, true)}
		}
		return lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: keep(rep.status, rep.header, rep.body, false)}
	case r.UnknownStatuses.Has(rep.status):
		// A gateway in front of the app says 502 and 504 while the app may go on.
		ended := rep.status != http.StatusBadGateway && rep.status != http.StatusGatewayTimeout
		return lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonAnswered, Answered: ended}
	}
	return lock.Ending{State: lock.StateReleased, Reason: lock.ReasonAnswered}
}

// classOf is the error's class for figures.
func classOf(err error) telemetry.ErrorClass {
	if err == nil {
		return telemetry.ErrorNone
	}
	return rowOf(err).class
}
