package proxy

import (
	"context"
	"errors"
	"net/http"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/verify"
)

// A Foresight is what a route would make of a delivery, as far as that can be
// told without store and app.
type Foresight struct {
	// Passes: the request is none of the route's deliveries, and passes through.
	Passes bool
	// Trace is what verification saw; nil where the route verifies nothing, or
	// it did not come to that.
	Trace *verify.Trace
	// Unjudged: whether it is genuine only others can tell, who were not asked.
	Unjudged bool
	// Handshake names the handshake that it is; empty: none.
	Handshake string
	// Found are the parts of the route's rules, of a batch those of its first
	// MaxExplained items, and Values what they make; also where the signature does
	// not hold.
	Found  keyextract.Explanation
	Values keyextract.Values
	// Err is why it is not claimed; nil where it would be, and for a handshake.
	Err error
	// Result is the answer's word and Status its status. Without a word it is for
	// the store to say: fresh, replay and so on. Status 0 is the app's own.
	Result telemetry.Result
	Status int
}

// MaxExplained bounds the items of a batch of which a Foresight tells.
const MaxExplained = 20

// Foresee takes a delivery a route's way up to the claim. It asks others for
// what the route's Verifier asks them for.
func Foresee(ctx context.Context, cr *config.Route, d *delivery.Delivery) (f Foresight) {
	r := &route{Route: cr}
	req := &http.Request{Method: d.Method, RequestURI: d.Target, Header: d.Header, ContentLength: int64(len(d.Body))}
	if f.Passes = r.passesBy(req) || cr.Mode == config.ModeOff; f.Passes {
		return f
	}
	p := &passage{r: r, delivery: d, doc: keyextract.Parse(d), req: req}
	f.Err = p.foreseeWay(ctx, &f)
	if cr.Rules != nil && f.Handshake == "" {
		f.Found = cr.Rules.Explain(p.doc, MaxExplained)
	}
	switch {
	case cr.Mode == config.ModeObserve:
		f.Result = telemetry.ResultObserved
	case f.Err != nil:
		row := rowOf(f.Err)
		f.Result, f.Status = row.word, row.statusOn(r)
		if row.unless != nil && row.unless(r) {
			f.Result, f.Status = telemetry.ResultUnclaimed, 0
		}
	case f.Handshake != "":
		f.Result = telemetry.ResultHandshake
	}
	return f
}

// foreseeWay is enforce without what it does. Its error is the first there is.
func (p *passage) foreseeWay(ctx context.Context, f *Foresight) error {
	err := admit(p.r, p.req)
	if f.Handshake = p.handshakeName(true); f.Handshake != "" && err == nil {
		return nil
	}
	if p.r.Verifier != nil {
		trace := p.r.Verifier.Explain(ctx, p.delivery)
		f.Trace = &trace
		f.Unjudged = errors.Is(trace.Err, verify.ErrOffline)
		if err == nil && !f.Unjudged {
			err = trace.Err
		}
	}
	if f.Handshake = p.handshakeName(false); f.Handshake != "" {
		return err
	}
	if p.r.Rules == nil {
		return err
	}
	values, unkeyed := p.r.Rules.Extract(p.doc)
	f.Values = values
	if err == nil {
		err = unkeyed
	}
	if err == nil && !f.Unjudged {
		err = p.withoutNamed(ctx, values)
	}
	return err
}

// RouteOf returns the route that a request target is on; nil: on none.
func RouteOf(c *config.Config, target string) *config.Route {
	table := make(routeTable[*config.Route], len(c.Routes))
	for _, r := range c.Routes {
		table[canonicalPath(r.Path)] = r
	}
	r, _ := table.match(target)
	return r
}
