package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/lock"
)

// What the app can do instead of answering 2xx, what the sender is told then,
// and how the claim stands.
func TestFailures(t *testing.T) {
	type failure struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		url    func(t *testing.T) string // where the app is, if not at the stub's
		status int
		result string
		state  lock.State
		reason string
		runsOn bool // the app may still be running
	}
	gone := func(*testing.T) string { return "http://127.0.0.1:1" }
	abort := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	failures := []failure{
		{name: "500", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, status: 500, result: "failed", state: lock.StateUnknown, reason: lock.ReasonAnswered},
		{name: "501", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) }, status: 501, result: "failed", state: lock.StateUnknown, reason: lock.ReasonAnswered},
		{name: "502", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, status: 502, result: "failed", state: lock.StateUnknown, reason: lock.ReasonAnswered, runsOn: true},
		{name: "503", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, status: 503, result: "failed", state: lock.StateReleased, reason: lock.ReasonAnswered},
		{name: "504", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, status: 504, result: "failed", state: lock.StateUnknown, reason: lock.ReasonAnswered, runsOn: true},
		{name: "404", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, status: 404, result: "failed", state: lock.StateReleased, reason: lock.ReasonAnswered},
		{name: "connection refused", url: gone, status: 502, result: "unreached", state: lock.StateReleased, reason: lock.ReasonUnsent},
		{name: "no such name", url: func(*testing.T) string { return "http://nowhere.invalid:80" }, status: 502, result: "unreached", state: lock.StateReleased, reason: lock.ReasonUnsent},
		{name: "no TLS there", url: func(t *testing.T) string {
			return strings.Replace(newRawApp(t, always("HTTP/1.1 200 OK\r\n\r\n")).url, "http:", "https:", 1)
		}, status: 502, result: "unreached", state: lock.StateReleased, reason: lock.ReasonUnsent},
		{name: "a certificate of nobody's", url: func(t *testing.T) string {
			return newTLS(t)
		}, status: 502, result: "unreached", state: lock.StateReleased, reason: lock.ReasonUnsent},
		{name: "no answer in time", answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, status: 504, result: "unknown", state: lock.StateUnknown, reason: lock.ReasonTimeout, runsOn: true},
		{name: "a reset before the answer", answer: abort, status: 502, result: "unknown", state: lock.StateUnknown, reason: lock.ReasonBroken, runsOn: true},
		{name: "a reset within the answer", answer: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "part")
			w.(http.Flusher).Flush()
			abort(w, r)
		}, status: 502, result: "unknown", state: lock.StateUnknown, reason: lock.ReasonBroken, runsOn: true},
		{name: "a failure that breaks off", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(400)
			io.WriteString(w, "part")
			w.(http.Flusher).Flush()
			abort(w, r)
		}, status: 502, result: "unknown", state: lock.StateUnknown, reason: lock.ReasonBroken, runsOn: true},
	}
	const route = jsonID + "\nupstream_timeout: 300ms\nwait: 50ms\n"
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		for _, f := range failures {
			start := func(t *testing.T, limit string) (one, other *rig) {
				a, s := newApp(t), open(t)
				yaml := "namespace: shop\n" + strings.ReplaceAll(acmeRoute(route), "app_limit: 0s", "app_limit: "+limit)
				url := a.URL
				if f.url != nil {
					url = f.url(t)
				}
				if f.answer != nil {
					a.answer(f.answer)
				}
				one, other = startRig(t, url, s, yaml), startRig(t, a.URL, s, yaml)
				one.app, other.app = a, a
				return one, other
			}
			t.Run("B27 "+f.name+": the sender's next try is the next attempt", func(t *testing.T) {
				one, other := start(t, "0s")
				s := one.expect(one.acme(`{"id":"evt_1"}`), f.status, f.result)
				if f.result != "failed" && s.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
				if c := one.claim("acme"); c.State != f.state || c.Reason != f.reason {
					t.Errorf("the claim is %s (%s), want %s (%s)", c.State, c.Reason, f.state, f.reason)
				}
				hits := other.app.count()
				other.app.answer(nil)
				other.expect(other.acme(`{"id":"evt_1"}`), 200, "fresh")
				other.expect(other.acme(`{"id":"evt_1"}`), 200, "replay")
				other.hits(hits + 1)
				if got := other.app.last(t).header.Get("Oncegate-Attempt"); got != "2" {
					t.Errorf("the app was told of attempt %q", got)
				}
				want := "0"
				if f.state == lock.StateUnknown {
					want = "1"
				}
				if got := other.counts(`oncegate_possible_second_runs_total{scope="acme"}`); got != want {
					t.Errorf("%s second runs were counted, want %s", got, want)
				}
			})
			t.Run("B27 "+f.name+": while the app may be running, nobody runs it again", func(t *testing.T) {
				one, other := start(t, "60s")
				one.expect(one.acme(`{"id":"evt_1"}`), f.status, f.result)
				other.app.answer(nil)
				hits := other.app.count()
				if !f.runsOn {
					other.expect(other.acme(`{"id":"evt_1"}`), 200, "fresh")
					return
				}
				s := other.expect(other.acme(`{"id":"evt_1"}`), 503, "settling")
				if after := s.header.Get("Retry-After"); after != "60" && after != "59" {
					t.Errorf("come again after %s s, want what is left of the app's 60", after)
				}
				other.hits(hits)
			})
		}
	})
}

func TestAnswersOfTheApp(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B29 what is no 2xx goes through, and is not kept", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			for _, status := range []int{300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 409, 410, 419, 422, 425, 429, 499, 500, 502, 503, 504, 599} {
				send := func() *http.Request { return r.acme(fmt.Sprintf(`{"id":"evt_%d"}`, status)) }
				r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", r.url+"/elsewhere")
					w.Header().Set("Retry-After", "7")
					w.WriteHeader(status)
					if status != 304 {
						fmt.Fprint(w, "no: ", status)
					}
				})
				hits := r.app.count()
				s := r.expect(send(), status, "failed")
				if s.header.Get("Location") != r.url+"/elsewhere" || s.header.Get("Retry-After") != "7" || status != 304 && s.body != fmt.Sprint("no: ", status) {
					t.Errorf("%d was changed: %v %q", status, s.header, s.body)
				}
				r.app.answer(nil)
				second := r.expect(send(), 200, "fresh")
				if third := r.expect(send(), 200, "replay"); third.body != second.body {
					t.Errorf("%d: %q, then %q", status, second.body, third.body)
				}
				r.hits(hits + 2)
			}
		})
		t.Run("B37 a POST is sent once, whatever its headers", func(t *testing.T) {
			for _, path := range []string{"/hooks/acme", "/handshake", "/observed", "/pass"} {
				for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Other"} {
					for _, body := range []string{`{"id":"x"}`, ""} {
						// It answers the first request of a connection, and reads the
						// second, and is gone.
						raw := newRawApp(t, func(c *wire) {
							if _, more := c.request(); more {
								c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
							}
							c.request()
						})
						r := startRig(t, raw.url, open(t), "namespace: shop\n"+acmeRoute("key: [{header: X-Id}]")+`
  handshake: {path: /handshake, verify: none, key: [{header: X-Id}], handshakes: [{name: h, when: {header: X-Id, present: true}}]}
  observed: {path: /observed, verify: none, key: [{header: X-Id}], mode: observe}
`)
						if s := r.send(r.post("/warm", "")); s.status != 200 {
							t.Fatal(s)
						}
						s := r.send(r.post(path, body, "X-Id", "1", name, "k", "X-Sig", mac(secret, body)))
						if s.status != 502 || raw.count() != 2 {
							t.Errorf("%s, %s, body %q: %d %q; the app read %d requests, want the first and one more", path, name, body, s.status, s.result, raw.count())
						}
						if path == "/hooks/acme" {
							if c := r.claim("acme"); c.State != lock.StateUnknown {
								t.Errorf("the claim is %s", c.State)
							}
						}
					}
				}
			}
		})
		t.Run("B43 a partial answer is never an answer", func(t *testing.T) {
			for _, answer := range []string{
				"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 40),
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
				"HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 2", "HTTP/1.1 100 Continue\r\n\r\n", "nonsense\r\n\r\n",
			} {
				raw := newRawApp(t, func(c *wire) { c.request(); c.say(answer) })
				r := startRig(t, raw.url, open(t), "namespace: shop\n"+acmeRoute(jsonID))
				r.expect(r.acme(`{"id":"evt_1"}`), 502, "unknown")
				if c := r.claim("acme"); c.State != lock.StateUnknown || c.Reason != lock.ReasonBroken || c.AnswerStatus != 0 {
					t.Errorf("%.40q: the claim is %s (%s), its answer %d", answer, c.State, c.Reason, c.AnswerStatus)
				}
				if s := r.send(r.post("/pass", "{}")); s.err == nil && s.status != 502 {
					t.Errorf("%.40q: passing through, it was taken for complete: %d %q", answer, s.status, s.body)
				}
				if n := raw.count(); n != 2 {
					t.Errorf("%d requests reached the app, want 2", n)
				}
			}
		})
	})
	t.Run("B37 a connection that the app closed is noticed before anything is sent", func(t *testing.T) {
		closed := make(chan bool)
		raw := newRawApp(t, func(c *wire) {
			if _, ok := c.request(); ok {
				c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				c.Close()
				closed <- true
			}
		})
		r := startRig(t, raw.url, newMem(), "namespace: shop\n"+acmeRoute(jsonID))
		for i := range 50 {
			r.expect(r.acme(fmt.Sprintf(`{"id":"evt_%d"}`, i)), 200, "fresh")
			<-closed
		}
	})
	t.Run("1xx and trailers of the app stay behind", func(t *testing.T) {
		raw := newRawApp(t, always("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"))
		r := startRig(t, raw.url, newMem(), "namespace: shop\n"+acmeRoute(jsonID))
		c := r.dial()
		body := `{"id":"evt_1"}`
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: 14\r\n\r\n" + body)
		head := c.until(t, "\r\n\r\nok")
		if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || !strings.Contains(head, "Content-Length: 2\r\n") || strings.Contains(head, "Trailer") {
			t.Errorf("got %q", head)
		}
	})
	t.Run("upstreams over TLS and unix sockets are told of in the class of the error", func(t *testing.T) {
		for url, class := range map[string]string{newTLS(t): "tls", "http://nowhere.invalid:80": "dns", "http://127.0.0.1:1": "refused", "http+unix:/nowhere.sock": "refused"} {
			r := startRig(t, url, newMem(), "namespace: shop\n"+acmeRoute(jsonID))
			r.expect(r.acme(`{"id":"evt_1"}`), 502, "unreached")
			eventually(t, func() bool { return strings.Contains(r.log.String(), `"error":"`+class+`"`) })
		}
	})
	t.Run("a late answer is not the sender's", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nupstream_timeout: 100ms"))
		arrived, release := r.app.hold(t)
		s := r.later(r.acme(`{"id":"evt_1"}`))
		<-arrived
		select {
		case got := <-s:
			if got.status != 504 || got.result != "unknown" {
				t.Errorf("got %d %q", got.status, got.result)
			}
		case <-time.After(10 * time.Second):
			t.Error("upstream_timeout does not end the attempt")
		}
		release()
	})
	t.Run("statuses that the provider understands", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\non_mismatch: refuse\nmax_body: 100B\nstatuses: {unverified: 500, unkeyed: 410, malformed: 444, mismatch: 423, unknown: 503}"))
		r.expect(r.post("/hooks/acme", "{}"), 500, "unverified")
		r.expect(r.acme("{}"), 410, "unkeyed")
		r.expect(r.acme("{"), 444, "malformed")
		r.expect(r.acme(strings.Repeat("x", 101)), 413, "malformed")
		put := r.acme("{}")
		put.Method = "PUT"
		r.expect(put, 405, "malformed")
		r.expect(r.acme(`{"id":"evt_1"}`), 200, "fresh")
		r.expect(r.acme(`{"id":"evt_1","x":1}`), 423, "mismatch")
		r.app.answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if s := r.expect(r.acme(`{"id":"evt_2"}`), 503, "unknown"); !slices.Equal(s.header["Retry-After"], []string{"5"}) {
			t.Errorf("Retry-After is %q", s.header["Retry-After"])
		}
	})
}

// newTLS returns the URL of a server whose certificate nobody knows.
func newTLS(t *testing.T) string {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
