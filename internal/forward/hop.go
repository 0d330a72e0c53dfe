package forward

import (
	"net/http"
	"net/textproto"
	"strings"
)

// isHop reports whether a header, named in canonical form, belongs to one
// connection and not to the message (RFC 9110, section 7.6.1).
func isHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// Named returns the headers, in canonical form, that h's Connection lines name:
// all lines, however many, an empty first one too. The pipeline refuses a
// delivery that names what its verification or its key rests on.
func Named(h http.Header) []string {
	var named []string
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			if option = textproto.TrimString(option); option != "" {
				named = append(named, textproto.CanonicalMIMEHeaderKey(option))
			}
		}
	}
	return named
}

// StripHop removes hop-by-hop headers from h, those that Connection names
// included, and returns the names that Connection gave.
func StripHop(h http.Header) (named []string) {
	named = Named(h)
	for _, name := range named {
		delete(h, name)
	}
	for name := range h {
		if isHop(textproto.CanonicalMIMEHeaderKey(name)) {
			delete(h, name)
		}
	}
	return named
}

// EndToEnd returns a copy of a request's headers as the app is to get them:
// without hop-by-hop headers and without reserved names. The values are shared
// with h. What is added to the copy afterwards reaches the app, whatever a
// Connection line named.
func EndToEnd(h http.Header) http.Header {
	out := make(http.Header, len(h)+2)
	for name, values := range h {
		if !Reserved(name) {
			out[name] = values
		}
	}
	StripHop(out)
	return out
}

// Reserved reports whether a header's name is oncegate's own (Oncegate-...), or
// becomes the same as one of those in the app: PHP, nginx, Apache and CGI in
// general fold '-' and '.' and other signs into '_', and ignore case.
func Reserved(name string) bool {
	const prefix = "oncegate"
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return false
	}
	c := name[len(prefix)]
	return !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z')
}

// StripReserved removes the names of [Reserved] from h.
func StripReserved(h http.Header) {
	for name := range h {
		if Reserved(name) {
			delete(h, name)
		}
	}
}
