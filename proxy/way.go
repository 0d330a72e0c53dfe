package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"oncegate/internal/config"
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

	room     int64  // taken of the hand's bytes, to be given back
	body     []byte // what was read of it
	whole    bool   // and that is all
	lingers  bool   // it was answered before that was read, and is still coming
	doc      *keyextract.Document
	delivery *delivery.Delivery
	out      telemetry.Outcome
}

// serveRoute takes a delivery all its way. It returns when all is done, also
// when the sender has left long before.
func (h *Handler) serveRoute(w http.ResponseWriter, req *http.Request, t *table, r *route) {
	p := &passage{h: h, t: t, r: r, w: w, req: req, arrived: time.Now()}
	defer func() {
		if p.lingers { // and is in hand no more
			linger(w, req.Body)
		}
	}()
	h.deliveries.Add(1)
	defer h.deliveries.Done()
	ctx, span := h.tel.StartServer(req.Context(), req, r.Name)
	p.out = telemetry.Outcome{Route: r.Name, Provider: r.Provider, Scope: r.Scope, At: p.arrived}
	defer func() {
		p.out.Total = time.Since(p.arrived)
		p.facts()
		if ctx.Err() != nil {
			// Nobody was left to answer.
			p.out.Status, p.out.Error = 0, cmp.Or(p.out.Error, telemetry.ErrorCanceled)
		}
		h.tel.Record(context.WithoutCancel(ctx), p.out)
		span.End(ctx, p.out.Status, p.out.Error)
	}()
	patient := newPatient(w, h.answerTime)
	defer patient.renew()
	p.w = patient
	if r.Mode == config.ModeObserve {
		patient.patience = h.pageTime // as if there were no route
		p.observe(ctx)
		return
	}
	if err := admit(r, req); err != nil {
		p.refuse(err, retryAfter)
		return
	}
	if !h.hand.take() {
		p.fail(ctx, ErrOverload, retryAfter)
		return
	}
	defer func() { h.hand.drop(p.room) }()
	p.enforce(ctx)
}

// enforce is the way of a delivery on an enforced route.
func (p *passage) enforce(ctx context.Context) {
	r := p.r
	if err := p.read(); err != nil {
		p.fail(ctx, err, retryAfter)
		return
	}
	if p.unsignedHandshake() {
		p.unclaimed(ctx, telemetry.ResultHandshake)
		return
	}
	if r.Verifier != nil {
		if err := r.Verifier.Verify(ctx, p.delivery); err != nil {
			p.refuse(err, retryAfter)
			return
		}
	}
	if p.handshake() {
		p.unclaimed(ctx, telemetry.ResultHandshake)
		return
	}
	values, err := r.Rules.Extract(p.doc)
	if err != nil {
		p.fail(ctx, err, retryAfter)
		return
	}
	if err := p.withoutNamed(ctx, values); err != nil {
		p.refuse(err, retryAfter)
		return
	}
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

// claim asks the Gate and does what it says.
func (p *passage) claim(ctx context.Context, values keyextract.Values) {
	ask := p.r.question(p.delivery, values)
	start := time.Now()
	d := p.h.gate.Begin(ctx, ask)
	p.claimed(&d, time.Since(start))
	if d.Record.Text != "" && len(values.Keys) == 1 {
		values.Keys[0] = d.Record.Text // a guard may have made it another event's
	}
	p.out.Key, p.out.MoreKeys = values.Keys[0], values.Keys[1:]
	p.out.Payload = ask.Payload
	switch {
	case d.Verdict == lock.Run:
		p.attempt(ctx, d.Attempt, ask, values.Keys)
	case !p.replayed(&d):
		p.fail(ctx, refusal(&d, ask), d.RetryAfter)
	}
}

// claimed notes what the Gate said.
func (p *passage) claimed(d *lock.Decision, took time.Duration) {
	if d.Waited {
		p.out.Waited = took
	} else {
		p.out.Claim = took
	}
	p.out.Differs = d.Differs && !p.r.Batches // which may be cut anew
	p.out.Attempt = d.Record.Attempt
	p.out.Duplicate = d.Record.Exists()
	if d.Attempt != nil {
		p.out.Attempt, p.out.SecondRun = d.Attempt.Number(), d.Attempt.SecondRun()
		p.out.Duplicate = p.out.Attempt > 1
	}
	if p.out.Duplicate {
		p.out.Age = d.Record.FirstSeen
	}
}

// replayed answers a delivery from the stored answer, if that is the decision.
func (p *passage) replayed(d *lock.Decision) bool {
	if d.Verdict != lock.Replay {
		return false
	}
	p.out.Result = telemetry.ResultReplay
	if d.Waited {
		p.out.Result = telemetry.ResultWaited
	}
	p.out.Status, p.out.Stub = d.Answer.Status, d.Answer.Stub
	replay(p.w, string(p.out.Result), d.Answer)
	return true
}

// fail refuses a delivery of which nothing was sent, unless the route would
// rather have it forwarded without a claim.
func (p *passage) fail(ctx context.Context, err error, retryAfter time.Duration) {
	if row := rowOf(err); row.unless == nil || !row.unless(p.r) {
		p.refuse(err, retryAfter)
		return
	}
	p.out.Detail = err.Error()
	if p.whole {
		p.unclaimed(ctx, telemetry.ResultUnclaimed)
		return
	}
	p.stream(ctx)
}

// refuse answers a delivery that failed, by the table.
func (p *passage) refuse(err error, retryAfter time.Duration) {
	row := rowOf(err)
	header := p.w.Header()
	clear(header)
	if !p.whole && p.req.ContentLength != 0 {
		// Else the server would wait for the rest of the body before it lets the
		// answer out. It waits afterwards, and not for ever.
		header.Set("Connection", "close")
		_ = http.NewResponseController(p.w).SetReadDeadline(p.arrived.Add(p.h.bodyTime))
		p.lingers = !errors.Is(err, ErrIncomplete)
	}
	row.allow(header, p.r)
	p.out.Result, p.out.Error, p.out.Detail = row.word, row.class, err.Error()
	p.out.Status = row.statusOn(p.r)
	row.write(p.w, p.out.Status, retryAfter, p.r.Preset != nil && p.r.Preset.Bare)
}
