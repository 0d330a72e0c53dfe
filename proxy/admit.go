package proxy

import (
	"net/http"
	"slices"
	"strings"
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
// deliveries: a browser's look, a probe, a CORS question. One that has a body, or
// asks to be taken for another method, is no such thing: there are handlers that
// take any method, and frameworks that believe it. Nor is HEAD where GET carries
// events: PHP frameworks run GET's handler for it.
func (r *route) passesBy(req *http.Request) bool {
	switch req.Method {
	case http.MethodHead:
		if slices.Contains(r.Methods, http.MethodGet) {
			return false
		}
	case http.MethodGet, http.MethodOptions:
	default:
		return false
	}
	return !slices.Contains(r.Methods, req.Method) && req.ContentLength == 0 && !overrides(req.Header)
}

// overrides reports whether a header asks for another method, in any spelling
// that PHP can't tell from it.
func overrides(h http.Header) bool {
	for name := range h {
		switch folded(name) {
		case "x-http-method-override", "x-http-method", "x-method-override":
			return true
		}
	}
	return false
}

// folded is a header's name as PHP can't tell it from others.
func folded(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }
