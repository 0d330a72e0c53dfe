package proxy

import "net/http"

// routeOf returns the route that a request belongs to: its target's, or the one
// that a header puts in the target's place. Its error is ErrTarget where two
// routes are named, of which only the app knows which one it will run.
func (t *table) routeOf(req *http.Request) (r *route, ok bool, err error) {
	r, ok = t.routes.match(req.RequestURI)
	for name, values := range req.Header {
		if !namesTarget(name) {
			continue
		}
		for _, target := range values {
			other, found := t.routes.match(target)
			if !found {
				continue
			}
			if ok && other != r {
				return nil, false, ErrTarget
			}
			r, ok = other, true
		}
	}
	return r, ok, nil
}

// namesTarget reports whether a header, in any spelling that PHP can't tell from
// it, is one of those that old versions of Symfony (before August 2018), and so
// Laravel and Drupal, and of Zend take for the request's target.
func namesTarget(name string) bool {
	if len(name) != len("X-Original-Url") && len(name) != len("X-Rewrite-Url") || name[0] != 'X' {
		return false
	}
	is := folded(name)
	return is == "x-original-url" || is == "x-rewrite-url"
}
