package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/lock"
)

// observe passes a delivery on as if there were no route, and says what it saw
// go by.
func (p *passage) observe(ctx context.Context) {
	seen := &watched{ReadCloser: p.req.Body, hand: &p.h.hand, length: p.req.ContentLength, most: p.r.MaxBody}
	var body io.ReadCloser = seen
	if p.req.ContentLength == 0 {
		body = http.NoBody
	}
	defer func() { // also when an answer that broke off ends the handler
		whole, ok := seen.end()
		err := admit(p.r, p.req)
		if err == nil && seen.large() {
			err = ErrTooLarge
		}
		switch {
		case err != nil:
			p.wouldFail(err)
		case ok:
			p.look(ctx, whole)
		default:
			p.out.Detail = "the body was not seen whole"
		}
		seen.giveBack()
	}()
	p.through(ctx, body, telemetry.ResultObserved, false)
}

// look notes what enforcing would have seen.
func (p *passage) look(ctx context.Context, body []byte) {
	ctx = context.WithoutCancel(ctx)
	p.delivery = deliver(p.t.config, p.req, body, p.arrived)
	p.doc = keyextract.Parse(p.delivery)
	if p.unsignedHandshake() {
		return
	}
	if p.r.Verifier != nil {
		if err := p.r.Verifier.Verify(ctx, p.delivery); err != nil {
			p.wouldFail(err)
			return
		}
	}
	if p.r.Rules == nil || p.handshake() {
		return
	}
	values, err := p.r.Rules.Extract(p.doc)
	if err != nil {
		p.wouldFail(err)
		return
	}
	if len(values.Keys) == 0 {
		return // the route has tags and no key
	}
	if err := p.withoutNamed(ctx, values); err != nil {
		p.wouldFail(err)
		return
	}
	p.out.Key, p.out.MoreKeys = values.Keys[0], values.Keys[1:]
	p.out.Payload, p.out.Unproven = p.r.payload(p.delivery), p.r.Verifier == nil
	p.seenBefore(values.Keys)
}

// seenBefore notes whether a delivery is a duplicate: a batch is where nothing of
// it is new.
func (p *passage) seenBefore(keys []string) {
	var oldest time.Duration
	p.out.Duplicate = true
	for _, key := range keys {
		age, again := p.h.seen.note(lock.KeyOf(p.r.namespace, p.r.Scope, key))
		p.out.Duplicate = p.out.Duplicate && again
		oldest = max(oldest, age)
	}
	if p.out.Duplicate {
		p.out.Age = oldest
	}
}

func (p *passage) wouldFail(err error) {
	row := rowOf(err)
	if row.unless == nil || !row.unless(p.r) {
		p.out.Refusal = row.word
	}
	if p.out.Error == telemetry.ErrorNone {
		p.out.Error = row.class
	}
	p.out.Detail = err.Error()
}

// A watched is a body that keeps what is read of it, as far as there is room to
// spare.
type watched struct {
	io.ReadCloser
	hand         *hand
	length, most int64

	// An exchange may be over while the body is still being read.
	mu   sync.Mutex // guards what follows
	body []byte
	room int64
	read int64 // bytes, kept or not
	lost bool  // nothing is kept any more
	eof  bool
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.eof = w.eof || err == io.EOF
	w.read += int64(n)
	switch {
	case w.lost:
	case int64(len(w.body)+n) > w.most, !w.makeRoom(len(w.body) + n):
		w.lose()
	default:
		w.body = append(w.body, b[:n]...)
	}
	return n, err
}

// makeRoom makes the body able to grow to size.
func (w *watched) makeRoom(size int) bool {
	if size <= cap(w.body) {
		return true
	}
	size = max(size, 2*cap(w.body), firstRoom)
	if !w.hand.spare(int64(size - cap(w.body))) {
		return false
	}
	w.room += int64(size - cap(w.body))
	w.body = append(make([]byte, 0, size), w.body...)
	return true
}

func (w *watched) lose() {
	w.hand.giveBack(w.room)
	w.lost, w.body, w.room = true, nil, 0
}

// end ends the keeping, and returns the body if it was seen whole.
func (w *watched) end() (body []byte, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole = !w.lost && (w.eof || int64(len(w.body)) == w.length)
	w.lost = true
	return w.body, whole
}

// large reports whether more has come than the route takes.
func (w *watched) large() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read > w.most
}

// giveBack gives back the room of a body that has been looked at.
func (w *watched) giveBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose()
}
