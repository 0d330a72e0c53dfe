package proxy

import (
	"net/http"
	"slices"
)

// admit looks at the head alone: nothing is read for a stranger.
func admit(r *route, req *http.Request) error {
	switch {
	case !passable(req):
		return ErrTarget
	case !slices.Contains(r.Methods, req.Method):
		return ErrMethod
	case req.ContentLength > r.MaxBody:
		return ErrTooLarge
	case r.Verifier == nil || r.mayBeUnsigned(req.Method):
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
