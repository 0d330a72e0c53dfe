package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/lock"
	"oncegate/verify"
)

// errRerun says that a kept request can't be sent as the route stands now.
var errRerun = errors.New("the kept request can't be sent")

// Rerun takes a kept request the way of a delivery, from the claim on: it was
// verified when it came. It is signed anew, where the scheme wants that and the
// key is held. The outcome says what its sender would have been answered.
func (h *Handler) Rerun(ctx context.Context, scope string, kept []byte) (telemetry.Outcome, error) {
	t := h.table.Load()
	d, r, err := t.kept(scope, kept)
	if err != nil {
		return telemetry.Outcome{}, err
	}
	if err := r.signAnew(d); err != nil {
		return telemetry.Outcome{}, err
	}
	h.deliveries.Add(1)
	defer h.deliveries.Done()
	if !h.hand.take() {
		return telemetry.Outcome{}, ErrOverload
	}
	p := &passage{
		h: h, t: t, r: r, w: &nobody{header: http.Header{}}, arrived: d.Arrived, whole: true,
		delivery: d, body: d.Body, doc: keyextract.Parse(d),
		req: &http.Request{Method: d.Method, RequestURI: d.Target, Host: d.Host, Header: d.Header, ContentLength: int64(len(d.Body))},
	}
	defer func() { h.hand.drop(p.room) }()
	p.out = telemetry.Outcome{Route: r.Name, Provider: r.Provider, Scope: r.Scope, At: p.arrived, Detail: "rerun by an operator"}
	return p.rerun(ctx)
}

// CanRerun says why a kept request could not be sent as the event with this key,
// if it can't.
func (h *Handler) CanRerun(key lock.Key, kept []byte) error {
	d, r, err := h.table.Load().kept(key.Scope, kept)
	if err != nil {
		return err
	}
	return r.canRerun(key, d)
}

// canRerun looks for what was taken away of the request when its claim was done,
// and for what the route has come to read otherwise since.
func (r *route) canRerun(key lock.Key, d *delivery.Delivery) error {
	if err := r.signAnew(d); err != nil {
		return err
	}
	if r.Verifier != nil {
		if err := r.Verifier.Plausible(d.Header); err != nil {
			return fmt.Errorf("%w: %w; what is a credential, or named by redact, is not kept of a done event's", errRerun, err)
		}
	}
	values, err := r.Rules.Extract(keyextract.Parse(d))
	if err != nil {
		return fmt.Errorf("%w: %w; what is a credential, or named by redact, is not kept of a done event's", errRerun, err)
	}
	is := func(text string) bool { return lock.KeyOf(r.namespace, r.Scope, text) == key }
	if values.Guard == "" && !slices.ContainsFunc(values.Keys, is) {
		return fmt.Errorf("%w: by the route's key rule, as it is now, it is another event", errRerun)
	}
	return nil
}

// kept finds a kept request's route, as routes stand now.
func (t *table) kept(scope string, kept []byte) (*delivery.Delivery, *route, error) {
	d, err := parseKept(kept)
	if err != nil {
		return nil, nil, err
	}
	r, ok := t.routes.match(d.Target)
	if !ok || r.Scope != scope || r.Mode != config.ModeEnforce {
		return nil, nil, fmt.Errorf("%w: its path is no enforced route of scope %s any more", errRerun, scope)
	}
	return d, r, nil
}

func (p *passage) rerun(ctx context.Context) (out telemetry.Outcome, err error) {
	values, err := p.r.Rules.Extract(p.doc)
	if err != nil {
		return p.out, fmt.Errorf("%w: %w", errRerun, err)
	}
	defer func() {
		// An answer that broke off after it was settled ends a handler so.
		if broke := recover(); broke != nil {
			if known, ok := broke.(error); !ok || !errors.Is(known, http.ErrAbortHandler) {
				panic(broke)
			}
		}
		p.out.Total = time.Since(p.arrived)
		p.h.tel.Record(context.WithoutCancel(ctx), p.out)
		out = p.out
	}()
	p.claim(ctx, values)
	return p.out, nil
}

// signAnew signs a delivery that is sent later than it came. Where no key is
// held the signature stays: it has a time that the app may mind, or none.
func (r *route) signAnew(d *delivery.Delivery) error {
	if r.Verifier == nil {
		return nil
	}
	lines, err := r.Verifier.Sign(d, d.Arrived)
	switch {
	case errors.Is(err, verify.ErrCannotSign):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errRerun, err)
	}
	for name, values := range lines {
		d.Header[name] = values
	}
	return nil
}

// A nobody takes an answer that nobody waits for.
type nobody struct{ header http.Header }

func (w *nobody) Header() http.Header         { return w.header }
func (w *nobody) Write(b []byte) (int, error) { return len(b), nil }
func (w *nobody) WriteHeader(int)             {}
