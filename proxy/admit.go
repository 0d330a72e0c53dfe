package proxy

import (
	"net/http"
	"slices"
	"sync/atomic"
)

// A hand counts the deliveries in hand, and the bytes of their bodies, against
// a limit. The zero hand takes nothing. It is safe for concurrent use.
type hand struct {
	deliveries, bytes       atomic.Int64
	maxDeliveries, maxBytes atomic.Int64
}

func (h *hand) limit(deliveries int, bytes int64) {
	h.maxDeliveries.Store(int64(deliveries))
	h.maxBytes.Store(bytes)
}

// take admits one delivery, if there is room.
func (h *hand) take() bool {
	if h.deliveries.Add(1) > h.maxDeliveries.Load() {
		h.deliveries.Add(-1)
		return false
	}
	return true
}

// grow admits n more bytes, if there is room.
func (h *hand) grow(n int64) bool {
	if h.bytes.Add(n) > h.maxBytes.Load() {
		h.bytes.Add(-n)
		return false
	}
	return true
}

// drop gives a delivery and its bytes back.
func (h *hand) drop(bytes int64) {
	h.bytes.Add(-bytes)
	h.deliveries.Add(-1)
}

// admit looks at the headers alone: nothing large is read for a stranger.
func admit(r *route, req *http.Request) error {
	if !slices.Contains(r.Methods, req.Method) {
		return ErrMethod
	}
	if req.ContentLength > r.MaxBody {
		return ErrTooLarge
	}
	if r.Verifier == nil || r.unsignedHandshakes {
		return nil
	}
	return r.Verifier.Plausible(req.Header)
}

// passesBy reports whether a request on a route's path is none of its
// deliveries: a browser's look, a probe, a CORS question.
func (r *route) passesBy(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return !slices.Contains(r.Methods, method)
	}
	return false
}
