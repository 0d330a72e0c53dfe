package forward

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

var (
	errMethod = errors.New("the method is not a token")
	errTarget = errors.New("the target is empty or holds spaces or control characters")
	errHost   = errors.New("the host holds spaces or control characters")
)

// appendHead appends the request line and the header lines, the empty line
// included. What could break the framing is refused, not repaired.
func (o *outgoing) appendHead(b []byte) ([]byte, error) {
	if !httpguts.ValidHeaderFieldName(o.method) {
		return b, errMethod
	}
	if o.target == "" || !visible(o.target) {
		return b, errTarget
	}
	if !visible(o.host) {
		return b, errHost
	}
	b = append(b, o.method...)
	b = append(b, ' ')
	b = append(b, o.target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, o.host...)
	b = append(b, "\r\n"...)
	for name, values := range o.header {
		if !httpguts.ValidHeaderFieldName(name) {
			return b, fmt.Errorf("header name %q is not a token", name)
		}
		if o.skips(textproto.CanonicalMIMEHeaderKey(name)) {
			continue
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return b, fmt.Errorf("the value of header %q holds control characters", name)
			}
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	return append(o.appendFraming(b), "\r\n"...), nil
}

// skips reports whether a header is not taken from the map: because the framing
// says it, because it belonged to another connection, or, Expect on a route,
// because the body is here already.
func (o *outgoing) skips(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	case "Connection", "Upgrade", "Te", "Expect":
		return !o.through
	}
	return isHop(name)
}

func (o *outgoing) appendFraming(b []byte) []byte {
	switch {
	case o.length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		if len(o.stream.names) > 0 {
			b = append(b, "Trailer: "+strings.Join(o.stream.names, ", ")+"\r\n"...)
		}
	case o.length > 0 || o.saysEmpty():
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, o.length, 10)
		b = append(b, "\r\n"...)
	}
	return b
}

// saysEmpty reports whether a body of no bytes is to be said to be one. Where
// the method usually has a body it is; else only if the sender did.
func (o *outgoing) saysEmpty() bool {
	switch o.method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodDelete:
		return len(o.header["Content-Length"]) > 0
	}
	return true
}

// visible reports whether s can stand on a request line: no spaces, no control
// characters. Bytes above ASCII may.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
