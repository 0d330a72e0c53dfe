package proxy_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// TestHTTP10 is about clients that speak HTTP/1.0, as nginx does to what is behind
// it unless it is told otherwise.
func TestHTTP10(t *testing.T) {
	t.Run("B43 half an answer does not look whole", func(t *testing.T) {
		body := `{"id":"evt_1"}`
		for name, ask := range map[string]string{
			"pass-through": "GET /x HTTP/1.0\r\nHost: h\r\n\r\n",
			"route":        "POST /hooks/acme HTTP/1.0\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: 14\r\n\r\n" + body,
		} {
			// Without an announced length. Larger than max_answer, where that holds.
			a := newRawApp(t, func(c *wire) {
				if _, ok := c.request(); ok {
					c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n" + strings.Repeat("x", 0x2000) + "\r\n")
				}
			})
			r := startRig(t, a.url, newMem(), "namespace: shop\n"+acmeRoute(jsonID+"\nmax_answer: 1KiB"))
			c := r.dial()
			c.say(ask)
			heard, err := io.ReadAll(c.in)
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %d bytes, and the end is %v, want a reset", name, len(heard), err)
			}
		}
	})
	t.Run("1xx answers are left out", func(t *testing.T) {
		a := newRawApp(t, always("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
		r := startRig(t, a.url, newMem(), "namespace: shop\n"+acmeRoute(jsonID+"\nmode: observe"))
		for _, path := range []string{"/x", "/hooks/acme"} {
			c := r.dial()
			c.say("POST " + path + " HTTP/1.0\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
			if s := c.hear(t); s.status != 200 || s.body != "ok" || s.header.Get("Link") != "" {
				t.Errorf("%s: got %d %q %q %v", path, s.status, s.header, s.body, s.err)
			}
		}
	})
}
