package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// observe forwards a delivery as if there were no route, and says what it saw.
func (p *passage) observe(ctx context.Context) {
	switch err := p.read(); {
	case err == nil:
		p.look(ctx)
	case errors.Is(err, ErrIncomplete):
		p.fail(err)
		return
	default:
		p.out.Detail = err.Error()
	}
	p.passOn(telemetry.ResultObserved)
}

// look notes what enforcing would have seen.
func (p *passage) look(ctx context.Context) {
	if p.r.Verifier != nil {
		if err := p.r.Verifier.Verify(ctx, p.delivery); err != nil {
			p.out.Error, p.out.Detail = rowOf(err).class, err.Error()
			return
		}
	}
	if p.r.Rules == nil || p.handshake() {
		return
	}
	values, err := p.r.Rules.Extract(p.doc)
	if err != nil {
		p.out.Error, p.out.Detail = rowOf(err).class, err.Error()
		return
	}
	if len(values.Keys) == 0 {
		return
	}
	p.out.Key = values.Keys[0]
	p.out.Age, p.out.Duplicate = p.h.seen.note(lock.KeyOf(p.r.namespace, p.r.Scope, p.out.Key))
}

// passOn forwards the delivery without a claim: what was read of the body and
// what is still to come, streamed, once. The app's answer is the sender's. It
// goes on when the sender hangs up, as an attempt does.
func (p *passage) passOn(word telemetry.Result) {
	p.out.Result = word
	req := p.req.WithContext(context.WithoutCancel(p.req.Context()))
	if p.delivery != nil && p.complete() {
		// An exact length, since PHP-FPM drops what has none.
		req.ContentLength = int64(len(p.body.bytes))
		req.TransferEncoding = nil
	}
	if len(p.body.bytes) > 0 {
		req.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(p.body.bytes), p.req.Body), p.req.Body}
	}
	req.Header = p.req.Header.Clone()
	req.Header.Del("Upgrade")
	w := &statusWriter{ResponseWriter: p.w, word: string(word)}
	defer func() { p.out.Status = w.status }()
	p.r.pass.ServeHTTP(w, req)
}

// complete reports whether the whole body is in hand.
func (p *passage) complete() bool {
	var one [1]byte
	n, err := p.req.Body.Read(one[:])
	if n > 0 {
		p.body.bytes = append(p.body.bytes, one[0])
	}
	return n == 0 && err == io.EOF
}

// A statusWriter notes the status that is written, and puts the result word on
// the answer of a route.
type statusWriter struct {
	http.ResponseWriter
	word   string // empty: not a route's
	status int
}

// Unwrap lets http.ResponseController reach what the writer wraps.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
		if w.word != "" {
			w.Header().Set(resultHeader, w.word)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// maxSeen bounds the memory of observed events.
const maxSeen = 1 << 16

// seen remembers when observed events were seen first: the last maxSeen of
// them. It is safe for concurrent use.
type seen struct {
	mu    sync.Mutex // guards what follows
	first map[lock.Key]time.Time
	order []lock.Key // a ring
	next  int
}

// note remembers an event. It reports how long ago it was first seen, if it was.
func (s *seen) note(k lock.Key) (age time.Duration, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.first[k]; ok {
		return time.Since(first), true
	}
	if s.first == nil {
		s.first = make(map[lock.Key]time.Time)
	}
	if len(s.order) < maxSeen {
		s.order = append(s.order, k)
	} else {
		delete(s.first, s.order[s.next])
		s.order[s.next] = k
		s.next = (s.next + 1) % maxSeen
	}
	s.first[k] = time.Now()
	return 0, false
}
