package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"oncegate/internal/delivery"
)

// A keptRequest is the head of a delivery that is kept; the body follows it
// after a line feed.
type keptRequest struct {
	Method string      `json:"method"`
	Target string      `json:"target"`
	Host   string      `json:"host"`
	Header http.Header `json:"header"`
	// Bytes: some of these are no UTF-8, which JSON can't hold, so that each
	// byte of all of them is written as the character of that number.
	Bytes bool `json:"bytes,omitempty"`
	// Partial: the body was not kept.
	Partial bool `json:"partial,omitempty"`
}

// keepRequest returns a delivery as it is kept for a later attempt.
func keepRequest(d *delivery.Delivery) []byte {
	k := keptRequest{Method: d.Method, Target: d.Target, Host: d.Host, Header: d.Header}
	return k.write(d.Body)
}

// write returns what readKept reads.
func (k keptRequest) write(body []byte) []byte {
	valid := true
	k.each(func(s string) string {
		valid = valid && utf8.ValidString(s)
		return s
	})
	if k.Bytes = !valid; k.Bytes {
		k = k.each(func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				b.WriteRune(rune(s[i]))
			}
			return b.String()
		})
	}
	// Strings and lists of them always marshal.
	head, _ := json.Marshal(k)
	return append(append(head, '\n'), body...)
}

// readKept takes a kept request apart.
func readKept(kept []byte) (k keptRequest, body []byte, err error) {
	head, body, ok := bytes.Cut(kept, []byte("\n"))
	if !ok || json.Unmarshal(head, &k) != nil {
		return k, nil, fmt.Errorf("%w: it can't be read", errRerun)
	}
	if k.Bytes {
		k = k.each(func(s string) string {
			b := make([]byte, 0, len(s))
			for _, r := range s {
				b = append(b, byte(r))
			}
			return string(b)
		})
	}
	return k, body, nil
}

// each returns a copy of which each text that a sender chose went through f.
func (k keptRequest) each(f func(string) string) keptRequest {
	k.Target, k.Host = f(k.Target), f(k.Host)
	header := make(http.Header, len(k.Header))
	for name, values := range k.Header {
		for _, v := range values {
			header[name] = append(header[name], f(v))
		}
	}
	k.Header = header
	return k
}

// parseKept makes a delivery of what keepRequest kept.
func parseKept(kept []byte) (*delivery.Delivery, error) {
	k, body, err := readKept(kept)
	switch {
	case err != nil:
		return nil, err
	case k.Method == "" || k.Target == "":
		return nil, fmt.Errorf("%w: it can't be read", errRerun)
	case k.Partial:
		return nil, fmt.Errorf("%w: its body was not kept (record: headers)", errRerun)
	}
	if k.Header == nil {
		k.Header = http.Header{}
	}
	return &delivery.Delivery{
		Method: k.Method, Target: k.Target, Host: k.Host, Header: k.Header, Body: body, Arrived: time.Now(),
	}, nil
}
