package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"oncegate/internal/delivery"
	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/lock"
)

// A passage is one delivery on its way.
type passage struct {
	h       *Handler
	t       *table
	r       *route
	w       http.ResponseWriter
	req     *http.Request
	arrived time.Time

	body     body
	lent     bool // an attempt holds the body, and gives its room back
	doc      *keyextract.Document
	delivery *delivery.Delivery
	out      telemetry.Outcome
}

// serveRoute takes a delivery all its way.
func (h *Handler) serveRoute(w http.ResponseWriter, req *http.Request, t *table, r *route) {
	p := &passage{h: h, t: t, r: r, w: w, req: req, arrived: time.Now()}
	p.out = telemetry.Outcome{Route: r.Name, Provider: r.Provider, Scope: r.Scope}
	ctx, span := h.tel.StartServer(req.Context(), req, r.Name)
	defer func() {
		p.out.Total = time.Since(p.arrived)
		h.tel.Record(context.WithoutCancel(ctx), p.out)
		span.End(ctx, p.out.Status, p.out.Error)
	}()
	if !h.hand.take() {
		p.fail(ErrOverload)
		return
	}
	defer func() {
		if !p.lent {
			h.hand.drop(p.body.taken)
		}
	}()
	if r.observed {
		p.observe(ctx)
		return
	}
	p.enforce(ctx)
}

// enforce is the way of a delivery on an enforced route.
func (p *passage) enforce(ctx context.Context) {
	r := p.r
	if err := admit(r, p.req); err != nil {
		p.fail(err)
		return
	}
	if err := p.read(); err != nil {
		p.fail(err)
		return
	}
	if p.unsignedHandshake() {
		p.passOn(telemetry.ResultHandshake)
		return
	}
	if r.Verifier != nil {
		if err := r.Verifier.Verify(ctx, p.delivery); err != nil {
			p.fail(err)
			return
		}
	}
	if p.handshake() {
		p.passOn(telemetry.ResultHandshake)
		return
	}
	values, err := r.Rules.Extract(p.doc)
	if err != nil {
		p.fail(err)
		return
	}
	if err := p.withoutNamed(ctx, values); err != nil {
		p.fail(err)
		return
	}
	p.out.Key = values.Keys[0]
	p.claim(ctx, values)
}

// withoutNamed refuses a delivery that would not be the same one without the
// headers that its Connection header names: the app, which gets it without them,
// must be able to see what was verified and claimed.
func (p *passage) withoutNamed(ctx context.Context, values keyextract.Values) error {
	carried := func(name string) bool { _, ok := p.req.Header[name]; return ok }
	if !slices.ContainsFunc(forward.Named(p.req.Header), carried) {
		return nil
	}
	bare := *p.delivery
	bare.Header = forward.EndToEnd(p.delivery.Header)
	if p.r.Verifier != nil && p.r.Verifier.Verify(ctx, &bare) != nil {
		return ErrHopNamed
	}
	again, err := p.r.Rules.Extract(keyextract.Parse(&bare))
	if err != nil || !slices.Equal(again.Keys, values.Keys) || again.Guard != values.Guard {
		return ErrHopNamed
	}
	return nil
}

// read reads the body and makes the delivery of it.
func (p *passage) read() (err error) {
	p.body, err = p.h.read(p.w, p.req, p.r.MaxBody)
	p.delivery = deliver(p.t.config, p.req, p.body.bytes, p.arrived)
	p.doc = keyextract.Parse(p.delivery)
	return err
}

// claim asks the Gate and does what it says.
func (p *passage) claim(ctx context.Context, values keyextract.Values) {
	ask := p.r.question(p.delivery, values)
	start := time.Now()
	d := p.h.gate.Begin(p.req.Context(), ask)
	p.claimed(&d, time.Since(start))
	if d.Verdict != lock.Run {
		p.decided(&d)
		return
	}
	taken, gone := make(chan reply), make(chan struct{})
	defer close(gone)
	p.lent = true
	p.h.attempts.Go(func() {
		defer p.h.hand.drop(p.body.taken)
		p.h.attempt(ctx, p.r, p.delivery, values.Keys, d.Attempt, taken, gone)
	})
	select {
	case rep := <-taken:
		p.reply(&rep, ask)
	case <-p.req.Context().Done():
		// The attempt goes on without its sender, who gets its answer next time.
		p.out.Result, p.out.Error = telemetry.ResultUnknown, telemetry.ErrorCanceled
		p.out.Detail = "the sender hung up; the attempt goes on"
	}
}

// claimed notes what the Gate said.
func (p *passage) claimed(d *lock.Decision, took time.Duration) {
	p.out.Differs = d.Differs
	p.out.Attempt = d.Record.Attempt
	p.out.Duplicate = d.Verdict != lock.Run && d.Record.Exists()
	p.out.Age = d.Record.FirstSeen
	if d.Waited {
		p.out.Waited = took
	} else {
		p.out.Claim = took
	}
	if d.Attempt != nil {
		p.out.Attempt, p.out.SecondRun = d.Attempt.Number(), d.Attempt.SecondRun()
		p.out.Duplicate = p.out.Attempt > 1
	}
}

// decided answers a delivery that is no attempt.
func (p *passage) decided(d *lock.Decision) {
	if d.Verdict != lock.Replay {
		p.failAfter(&verdictError{d.Verdict, d.Err}, d.RetryAfter)
		return
	}
	p.out.Result = telemetry.ResultReplay
	if d.Waited {
		p.out.Result = telemetry.ResultWaited
	}
	p.out.Status, p.out.Stub = d.Answer.Status, d.Answer.Stub
	replay(p.w, string(p.out.Result), d.Answer)
}

// reply answers the delivery whose attempt has ended.
func (p *passage) reply(rep *reply, ask *lock.Ask) {
	defer rep.done()
	p.out.Upstream, p.out.Settle = rep.upstream, rep.settle
	succeeded := rep.err == nil && rep.status >= 200 && rep.status < 300
	if rep.settled == lock.SettleFenced && !succeeded {
		p.follow(ask)
		return
	}
	if rep.err != nil {
		p.fail(rep.err)
		return
	}
	p.out.Result, p.out.Status = telemetry.ResultFailed, rep.status
	if succeeded {
		p.out.Result = telemetry.ResultFresh
	}
	if err := relay(p.w, string(p.out.Result), rep.status, rep.header, rep.body, rep.rest); err != nil {
		p.out.Error, p.out.Detail = classOf(err), "the app's answer broke off after it was settled"
		panic(http.ErrAbortHandler) // the sender must see that this is not all
	}
}

// follow makes of a delivery whose attempt was fenced a duplicate, for what is
// left of its wait. It never becomes another attempt.
func (p *passage) follow(ask *lock.Ask) {
	again := *ask
	again.Follow = true
	again.Wait = max(0, p.r.Wait-time.Since(p.arrived))
	d := p.h.gate.Begin(p.req.Context(), &again)
	p.decided(&d)
}

// fail answers a delivery that failed, by the table.
func (p *passage) fail(err error) { p.failAfter(err, p.h.retryAfter) }

func (p *passage) failAfter(err error, retryAfter time.Duration) {
	row := rowOf(err)
	if p.forwards(row.word, err) {
		p.passOn(telemetry.ResultUnclaimed)
		return
	}
	p.out.Result, p.out.Error = row.word, row.class
	p.out.Detail = err.Error()
	p.out.Status = refuse(p.w, p.r, row, retryAfter)
}

// forwards reports whether the route would rather have a delivery forwarded
// without a claim than refused for this: what its sender never sends again must
// not be lost.
func (p *passage) forwards(word telemetry.Result, err error) bool {
	switch word {
	case telemetry.ResultUnkeyed:
		return p.r.OnMissingKey == "forward"
	case telemetry.ResultOverload:
		var stopping *verdictError
		return p.r.OnOverload == "forward" || errors.As(err, &stopping) && p.r.OnStoreOutage == "forward"
	case telemetry.ResultUnavailable:
		var gate *verdictError
		return p.r.OnStoreOutage == "forward" && errors.As(err, &gate)
	}
	return false
}
