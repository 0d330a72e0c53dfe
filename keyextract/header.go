package keyextract

import (
	"net/http"
	"strings"

	"oncegate/internal/phpvars"
)

// readHeader returns the one line of a header. Lines whose names PHP can't tell
// from this one (X_Id and X-Id are both HTTP_X_ID) count as the same header.
func readHeader(h http.Header, name string) (string, *Error) {
	lines := h[name]
	for other := range h {
		if other != name && phpvars.SameHeader(other, name) {
			return "", malformed("a header whose name differs only in punctuation stands beside or instead of it")
		}
	}
	switch len(lines) {
	case 0:
		return "", nil
	case 1:
		return strings.Trim(lines[0], " \t"), nil
	}
	return "", malformed("the header stands on %d lines", len(lines))
}

// sfString reads a header that is a structured-field string (RFC 9651, section
// 3.3.3), or the same text without its quotes: tokens and UUIDs as clients of
// Idempotency-Key send them. Parameters are refused.
func sfString(s string) (string, *Error) {
	if !strings.HasPrefix(s, `"`) {
		for i := range len(s) {
			if c := s[i]; c <= 0x20 || c >= 0x7f || strings.IndexByte(`",;\`, c) >= 0 {
				return "", malformed("neither a quoted string nor a bare token")
			}
		}
		return s, nil
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if i != len(s)-1 {
				return "", malformed("something follows the quoted string")
			}
			return out.String(), nil
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", malformed(`in a quoted string "\" stands only before another or before a quote`)
			}
			out.WriteByte(s[i])
		case c < 0x20 || c > 0x7e:
			return "", malformed("a quoted string holds a byte that is not printable ASCII")
		default:
			out.WriteByte(c)
		}
	}
	return "", malformed("the quoted string has no end")
}
