package main

import (
	"io"
	"net/http"
	"syscall"
	"testing"
)

// TestLeaving: B67 while oncegate drains, a kept connection ends with an answer
// that says so. On one that is closed as idle a request may be under way.
func TestLeaving(t *testing.T) {
	app := newSlowApp(t)
	close(app.answer)
	s := serveProcess(t, app.URL, "drain_delay: 10m") // the test is over before
	asks := map[string]string{
		"pass-through": "GET /page HTTP/1.1\r\nHost: h\r\n\r\n",
		"a refusal":    "POST /stripe/webhook HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
	}
	kept := map[string]*visitor{}
	last := func(name string) bool {
		if _, err := io.WriteString(kept[name], asks[name]); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(kept[name].answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		return response.Close
	}
	for name := range asks {
		if kept[name] = visitAt(t, s.url); last(name) {
			t.Fatalf("%s: the connection is not kept at all", name)
		}
	}
	s.signal(t, syscall.SIGTERM)
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = s.probe(t, "/readyz")
	}
	for name := range asks {
		if !last(name) {
			t.Errorf("%s: the connection is still kept", name)
			continue
		}
		kept[name].closed(t)
	}
}
