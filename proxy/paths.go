package proxy

import (
	"path"
	"strings"
)

// canonicalPath returns the path that a raw request target stands for in the
// app: a path that is written in another way *is* the same route, since the app
// runs the same handler for it.
//
// What web servers and Laravel do to a target before they look up a route is
// undone once, all of it: a scheme and a host are dropped, a query and a
// fragment are dropped (nginx and Symfony both cut at a raw '#'), one layer of
// percent-encoding is decoded, what follows a NUL is dropped, slashes are
// merged, dots resolved, trailing slashes dropped, and a leading /index.php is
// taken off, with or without a slash after it (Symfony adds the slash by
// itself: /index.phpstripe/webhook reaches /stripe/webhook). No server does all
// of that, so more forms match than reach the handler; those are verified, which
// harms nobody. What a path stands for in an app that has a folder, or scripts,
// of its own is routeTable's to know.
//
// Case, semicolons and backslashes are left alone: nginx, PHP and Laravel take
// them literally, as they do a second layer of percent-encoding.
func canonicalPath(target string) string { return underFront(plainPath(target)) }

// plainPath is canonicalPath with the front controller left where it is.
func plainPath(target string) string {
	p := targetPath(target)
	if isPlain(p) {
		return p
	}
	p, _, _ = strings.Cut(unescapeOnce(p), "\x00")
	// Clean never climbs above the root, and merges and trims slashes too.
	return path.Clean("/" + p)
}

// underFront takes the front controller off a plain path.
func underFront(p string) string {
	rest, ok := strings.CutPrefix(p, frontController)
	if ok && !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	if ok {
		return rest
	}
	return p
}

const frontController = "/index.php"

// targetPath returns the part of a target that is a path, still encoded. A
// target without a slash in front is taken as an absolute one if it has a
// scheme, as PHP does it.
func targetPath(target string) string {
	if !strings.HasPrefix(target, "/") {
		if scheme, rest, ok := strings.Cut(target, ":"); ok && !strings.ContainsAny(scheme, "/?#") {
			target = rest
			if after, ok := strings.CutPrefix(rest, "//"); ok {
				target = ""
				if i := strings.IndexAny(after, "/?#"); i >= 0 {
					target = after[i:]
				}
			}
		}
	}
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	return target
}

// isPlain reports whether p is left as it is. Most paths are, so this is
// what a request that is no delivery pays.
func isPlain(p string) bool {
	if p == "/" {
		return true
	}
	if !strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") {
		return false
	}
	for i := range len(p) {
		switch c := p[i]; {
		case c == '%' || c == 0:
			return false
		case c == '/' && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.'):
			return false
		}
	}
	return true
}

// unescapeOnce decodes percent-encoding as PHP's rawurldecode does: what is not
// an escape stays as it is.
func unescapeOnce(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if ok1 && ok2 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
