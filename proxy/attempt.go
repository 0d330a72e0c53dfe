package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"oncegate/internal/delivery"
	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// A reply is what came of forwarding a delivery: an error, or the app's answer.
type reply struct {
	err  error // no complete answer came, or none was asked for
	sent bool  // false is certain: the app has seen nothing

	status int
	header http.Header
	body   []byte
	rest   io.Reader // what the body goes on with, where it is too large to keep
}

func (r *reply) succeeded() bool { return r.err == nil && r.status >= 200 && r.status < 300 }

// attempt forwards a claimed delivery, settles how that ended, and answers.
func (p *passage) attempt(ctx context.Context, a *lock.Attempt, ask *lock.Ask, keys []string) {
	sender := ctx
	ctx, cancel := p.r.detached(ctx, a.Context())
	defer cancel()
	defer context.AfterFunc(a.Lost(), cancel)()
	rep, settled := p.perform(ctx, a, ask, keys)
	switch {
	case settled == lock.SettleFenced && !rep.succeeded():
		p.follow(sender, ask)
	case rep.err != nil:
		p.fail(sender, rep.err, retryAfter)
	case rep.succeeded():
		p.relay(telemetry.ResultFresh, &rep)
	default:
		p.relay(telemetry.ResultFailed, &rep)
	}
}

// detached returns the context of an exchange with the app that the sender's
// leaving doesn't end. What ends it is the route's upstream_timeout, and the end
// of life.
func (r *route) detached(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.UpstreamTimeout)
	stop := context.AfterFunc(life, cancel)
	return ctx, func() { stop(); cancel() }
}

// perform forwards the delivery once, and settles the attempt.
func (p *passage) perform(ctx context.Context, a *lock.Attempt, ask *lock.Ask, keys []string) (rep reply, settled lock.SettleResult) {
	// This is what a panic leaves: an attempt that has begun is settled whatever
	// happens, or it would be renewed for ever.
	ending := lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonBroken}
	defer func() {
		start := time.Now()
		settled = a.Settle(ending)
		p.out.Settle = time.Since(start)
	}()
	d, keys := p.portion(a, keys)
	header := forward.EndToEnd(d.Header)
	header["Oncegate-Event"] = []string{eventHeader(p.r.Scope, keys)}
	header["Oncegate-Attempt"] = []string{strconv.Itoa(a.Number())}
	rep = p.send(ctx, d, header, a.Number(), func() error {
		err := a.Start()
		if err != nil && !errors.Is(err, lock.ErrFenced) {
			err = fmt.Errorf("%w: %w", ErrStore, err)
		}
		return err
	})
	ending = p.r.ending(&rep, a.Context().Err() != nil)
	return rep, settled
}

// send forwards the delivery to the app, once, and reads the answer, as far as
// it can be kept.
func (p *passage) send(ctx context.Context, d *delivery.Delivery, header http.Header, attempt int, before func() error) (rep reply) {
	ctx, span := p.h.tel.StartClient(ctx, p.r.Name, d.Method, attempt)
	span.Inject(header)
	start := time.Now()
	defer func() {
		p.out.Upstream = time.Since(start)
		span.End(ctx, rep.status, classOf(rep.err))
	}()
	refused := false // by before, so that nothing was sent
	answer, err := p.r.app.Forward(ctx, &forward.Request{
		Method: d.Method, Target: d.Target, Host: d.Host, Remote: p.req.RemoteAddr, Header: header, Body: d.Body,
		BeforeFirstByte: func() error {
			if before == nil {
				return nil
			}
			err := before()
			refused = err != nil
			return err
		},
	})
	if err == nil {
		rep.status, rep.header = answer.Status, answer.Header
		p.out.AppStatus = rep.status
		p.hold(answer.Length)
		rep.body, rep.rest, err = upTo(answer.Body, p.r.MaxAnswer)
	}
	if rep.err = err; rep.status != 0 {
		p.out.AppAnswer, p.out.AppSize = p.evident(&rep), len(rep.body)
	}
	var app *forward.Error
	rep.err, rep.sent = err, !refused && !(errors.As(err, &app) && !app.Sent())
	return rep
}

// hold counts an answer among what is in hand. It is not refused: the app has
// run.
func (p *passage) hold(length int64) {
	room := p.r.MaxAnswer
	if length >= 0 {
		room = min(room, length)
	}
	p.h.hand.hold(room)
	p.room += room
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
	switch {
	case !rep.sent:
		return lock.Ending{State: lock.StateReleased, Reason: lock.ReasonUnsent}
	case rep.err != nil:
		return lock.Ending{State: lock.StateUnknown, Reason: whyUnknown(rep.err, cut)}
	case rep.succeeded() && rep.rest != nil:
		return lock.Ending{State: lock.StateDone, Reason: lock.ReasonOversized, Answer: keep(rep.status, rep.header, nil, true)}
	case rep.succeeded():
		return lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: keep(rep.status, rep.header, rep.body, false)}
	case r.UnknownStatuses.Has(rep.status):
		return lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonAnswered, Answered: !gateway(rep.status)}
	}
	return lock.Ending{State: lock.StateReleased, Reason: lock.ReasonAnswered}
}

func whyUnknown(err error, cut bool) string {
	var app *forward.Error
	switch {
	case cut:
		return lock.ReasonShutdown
	case errors.As(err, &app) && app.Kind == forward.Timeout:
		return lock.ReasonTimeout
	case errors.As(err, &app) && app.Kind == forward.Upgraded:
		return lock.ReasonUpgraded
	}
	return lock.ReasonBroken
}

// relay gives the sender the app's own answer.
func (p *passage) relay(word telemetry.Result, rep *reply) {
	p.out.Result, p.out.Status = word, rep.status
	if err := relay(p.w, p.req.Method, string(word), rep); err != nil {
		p.out.Error, p.out.Detail = classOf(err), "the app's answer broke off after it was settled"
		panic(http.ErrAbortHandler) // the sender must see that this is not all
	}
}

// follow makes of a delivery whose attempt was fenced a duplicate, for what is
// left of its wait. It never becomes another attempt.
func (p *passage) follow(ctx context.Context, ask *lock.Ask) {
	again := *ask
	again.Follow = true
	again.Wait = max(0, p.r.Wait-time.Since(p.arrived))
	d := p.h.gate.Begin(ctx, &again)
	if !p.replayed(&d) {
		p.refuse(refusal(&d, &again), d.RetryAfter)
	}
}
