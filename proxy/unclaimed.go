package proxy

import (
	"bytes"
	"context"
	"io"

	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
)

// unclaimed forwards a delivery that was read whole, once and without a claim.
// It goes on when the sender leaves, as an attempt does.
func (p *passage) unclaimed(ctx context.Context, word telemetry.Result) {
	ctx, cancel := p.r.detached(ctx, p.h.life)
	defer cancel()
	rep := p.send(ctx, p.delivery, forward.EndToEnd(p.delivery.Header), 0, nil)
	if rep.err != nil {
		p.refuse(rep.err, retryAfter)
		return
	}
	p.relay(word, &rep)
}

// stream forwards, without a claim, a delivery for whose body there was no room:
// what was read of it, and then what is still to come. So it can't have been
// verified; that is the app's to do.
func (p *passage) stream(ctx context.Context) {
	ctx, cancel := p.r.detached(ctx, p.h.life)
	defer cancel()
	body := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(p.body), p.req.Body), p.req.Body}
	p.through(ctx, body, telemetry.ResultUnclaimed, true)
}

// through takes a delivery along the way of all other traffic. Alone, it goes on
// without its sender.
func (p *passage) through(ctx context.Context, body io.ReadCloser, word telemetry.Result, alone bool) {
	req := p.req.WithContext(ctx)
	req.Body = body
	req.Header = p.req.Header.Clone()
	req.Header.Del("Upgrade") // nobody leaves the ways of a route
	if alone {
		req.Header.Del("Expect") // answered here, by reading on
	}
	noted := &noted{ResponseWriter: p.w, word: word, alone: alone, final: alone || !req.ProtoAtLeast(1, 1)}
	defer func() {
		p.out.Result, p.out.Status, p.out.Error = noted.word, noted.status, noted.class
	}()
	p.r.pass.ServeHTTP(noted, req)
}
