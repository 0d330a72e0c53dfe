package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"oncegate/lock"
)

func TestObserve(t *testing.T) {
	observed := func(more string) string { return acmeRoute(jsonID + "\nmode: observe\n" + more) }
	t.Run("everything is forwarded, and counted by what it is", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), observed(""))
		sends := []*http.Request{
			r.acme(`{"id":"evt_1"}`), r.acme(`{"id":"evt_1"}`), r.acme(`{"id":"evt_2"}`), r.acme(`{}`), r.acme(`{`),
			r.post("/hooks/acme", `{"id":"evt_1"}`), r.post("/hooks/acme", `{"id":"evt_1"}`, "X-Sig", mac("wrong", "x")), r.acme(""),
		}
		for i, req := range sends {
			if a := r.expect(req, 200, "observed"); a.body != fmt.Sprint("answer ", i+1) {
				t.Errorf("delivery %d got %q", i, a.body)
			}
		}
		put := r.acme("{}")
		put.Method = "PUT"
		r.expect(put, 200, "observed")
		if r.records() != 0 {
			t.Error("something was stored")
		}
		if got := r.app.last(t).header; got["Oncegate-Event"] != nil || got["Oncegate-Attempt"] != nil {
			t.Errorf("the app got %v", got)
		}
		eventually(t, func() bool {
			return r.counts(`oncegate_deliveries_total{result="observed",route="acme"}`) == "9" && r.counts(`oncegate_duplicates_total{route="acme"}`) == "1"
		})
		for word, want := range map[string]string{"unverified": "2", "unkeyed": "2", "malformed": "2"} {
			if got := r.counts(fmt.Sprintf(`oncegate_observed_refusals_total{result=%q,route="acme"}`, word)); got != want {
				t.Errorf("%s deliveries would be refused as %s, want %s", got, word, want)
			}
		}
		for _, want := range []string{`"key":"evt_1"`, `"key":"evt_2"`, `"duplicate":true`, `"refusal":"unverified"`, "no usable value", "signature"} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("the log lacks %s", want)
			}
		}
	})
	t.Run("enforcing would refuse the same", func(t *testing.T) {
		const rules = "key: [{json: /id}]\nmax_body: 1KiB\nhandshakes: [{name: ping, unsigned: true, when: {json: /type, in: [ping]}}]"
		watches, refuses := newRig(t, newApp(t), newMem(), acmeRoute(rules+"\nmode: observe")), newRig(t, newApp(t), newMem(), acmeRoute(rules))
		large := fmt.Sprintf(`{"id":"evt_1","x":%q}`, strings.Repeat("x", 1<<10))
		for name, make := range map[string]func(*rig) *http.Request{
			"an event":                   func(r *rig) *http.Request { return r.acme(`{"id":"evt_1"}`) },
			"B75 an unsigned handshake":  func(r *rig) *http.Request { return r.post("/hooks/acme", `{"type":"ping"}`) },
			"a signed one":               func(r *rig) *http.Request { return r.acme(`{"type":"ping"}`) },
			"B53 a large one":            func(r *rig) *http.Request { return r.acme(large) },
			"B45 a header that is named": func(r *rig) *http.Request { return r.acme(`{"id":"evt_1"}`, "Connection", "close, X-Sig") },
			"B53 a large one, in chunks": func(r *rig) *http.Request {
				req := r.acme(large)
				req.Body, req.ContentLength = io.NopCloser(io.MultiReader(req.Body)), -1
				return req
			},
			"another method": func(r *rig) *http.Request {
				req := r.acme(`{"id":"evt_1"}`)
				req.Method = "PUT"
				return req
			},
		} {
			enforced := refuses.send(make(refuses))
			watches.log.take()
			watches.expect(make(watches), 200, "observed")
			line := ""
			eventually(t, func() bool { line += watches.log.take(); return strings.Contains(line, `"result":"observed"`) })
			want := ""
			if enforced.status != 200 {
				want = fmt.Sprintf(`"refusal":%q`, enforced.result)
			}
			if (want == "") == strings.Contains(line, `"refusal"`) || !strings.Contains(line, want) {
				t.Errorf("%s: enforcing says %d %q, observing %s", name, enforced.status, enforced.result, line)
			}
		}
	})
	t.Run("B13 a batch is a duplicate where nothing of it is new", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), observed("each: /events"))
		for _, ids := range [][]string{{"e1", "e2"}, {"e1", "e3"}, {"e3", "e2"}} {
			r.expect(r.acme(eventsOf(ids...)), 200, "observed")
		}
		eventually(t, func() bool { return r.counts(`oncegate_deliveries_total{result="observed",route="acme"}`) == "3" })
		if n := r.counts(`oncegate_duplicates_total{route="acme"}`); n != "1" {
			t.Errorf("%s duplicates, want 1", n)
		}
	})
	t.Run("what enforcing would have claimed is evidence, and nothing else", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), observed(""))
		for _, body := range []string{`{"id":"evt_1"}`, `{"id":"evt_1"}`, `{"id":"evt_2"}`, `{}`} {
			r.expect(r.acme(body, "X-Slack-Retry-Num", "1"), 200, "observed")
		}
		r.expect(r.post("/hooks/acme", `{"id":"evt_3"}`, "X-Sig", "forged"), 200, "observed")
		e := r.kept.find(t, 3)["observed"]
		if e.Status != 200 || e.Remote != "127.0.0.1" || e.Retry != "x-slack-retry-num: 1" || e.Payload == "" || e.Attempt != 0 {
			t.Errorf("%+v", e)
		}
		text := r.kept.text(t)
		if strings.Contains(text, "evt_3") || strings.Count(text, `"Duplicate":true`) != 1 || len(r.kept.r.Refused()) != 2 {
			t.Errorf("in evidence: %s", text)
		}
		if r.records() != 0 {
			t.Error("something was claimed")
		}
	})
	t.Run("as if there were no route: chunks, streams, failures, the app's absence", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), observed(""))
		req := r.acme(`{"id":"evt_1"}`)
		req.Body, req.ContentLength = io.NopCloser(io.MultiReader(req.Body)), -1
		r.expect(req, 200, "observed")
		if got := r.app.last(t); !got.chunked || got.body != `{"id":"evt_1"}` {
			t.Errorf("the app got %v", got)
		}
		r.expect(r.acme(`{"id":"evt_1"}`), 200, "observed")
		eventually(t, func() bool { return r.counts(`oncegate_duplicates_total{route="acme"}`) == "1" })

		heard := make(chan bool)
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				io.WriteString(w, "event")
				w.(http.Flusher).Flush()
				<-heard
			}
		})
		resp, err := sender.RoundTrip(r.acme(`{"id":"evt_3"}`))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			heard <- true
		}
		resp.Body.Close()
		r.app.say(500, "no")
		if a := r.expect(r.acme(`{"id":"evt_3"}`), 500, "observed"); a.body != "no" {
			t.Errorf("got %q", a.body)
		}
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "part")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		if a := r.send(r.acme(`{"id":"evt_4"}`)); a.err == nil {
			t.Errorf("a partial answer looked complete: %d %q", a.status, a.body)
		}
		eventually(t, func() bool { return strings.Contains(r.log.String(), `"error":"broken"`) })
		r.app.Close()
		r.expect(r.acme(`{"id":"evt_5"}`), 502, "unreached")
	})
	t.Run("a large body leaves memory flat", func(t *testing.T) {
		const size = 200 << 20
		read := make(chan int64, 1)
		raw := newRawApp(t, func(c *wire) {
			req, err := http.ReadRequest(c.in)
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, req.Body)
			read <- n
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		})
		r := startRig(t, raw.url, newMem(), "namespace: shop\n"+observed(""))
		req := r.acme("")
		req.Body, req.ContentLength = io.NopCloser(io.LimitReader(zeros{}, size)), size
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.expect(req, 200, "observed")
		runtime.ReadMemStats(&after)
		if n := <-read; n != size {
			t.Errorf("%d bytes arrived", n)
		}
		if grown := int64(after.TotalAlloc) - int64(before.TotalAlloc); grown > 32<<20 {
			t.Errorf("%d MiB were allocated on the way", grown>>20)
		}
	})
	t.Run("slow senders leave room for the others", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "max_in_hand_bytes: 1MiB\nmax_answer: 1KiB\nmax_body: 900KiB\n"+observed("")+`
  stripe: {path: /stripe/webhook, provider: stripe, secrets: `+secret+`}
`)
		for range 10 {
			c := r.dial()
			c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n" + strings.Repeat("x", 100<<10))
		}
		eventually(t, func() bool { _, bytes := r.handler.InHand(); return bytes > 300<<10 })
		if _, bytes := r.handler.InHand(); bytes > 512<<10 {
			t.Errorf("what is only watched takes %d bytes of 1 MiB", bytes)
		}
		r.expect(r.stripe(fmt.Sprintf(`{"id":"evt_1","x":%q}`, strings.Repeat("x", 200<<10))), 200, "fresh")
		r.expect(r.acme(`{"id":"evt_1"}`), 200, "observed")
	})
	t.Run("a route that is off is no route, and keeps its app", func(t *testing.T) {
		own := newApp(t)
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nmode: off\nupstream: "+own.URL))
		r.expect(r.post("/hooks/acme", "{}"), 200, "")
		r.hits(0)
		if own.count() != 1 {
			t.Error("the route's own app was not reached")
		}
	})
}

func TestReload(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
		other := newApp(t)
		arrived, release := r.app.hold(t)
		first := r.later(r.acme(`{"id":"evt_1"}`))
		<-arrived
		r.url = other.URL
		if err := r.handler.Reload(r.load("namespace: shop\nmax_answer: 0\nroutes:\n  new: {path: /new, verify: none, key: [{json: /id}]}\n")); err != nil {
			t.Fatal(err)
		}
		r.expect(r.post("/hooks/acme", "{}"), 200, "")
		r.expect(r.post("/new", `{"id":"evt_1"}`), 200, "fresh")
		if other.count() != 2 {
			t.Errorf("%d requests reached the new app, want 2", other.count())
		}
		release()
		if a := <-first; a.status != 200 || a.result != "fresh" || a.body != "held" {
			t.Errorf("the attempt that was under way: %d %q %q", a.status, a.result, a.body)
		}
		r.url = r.app.URL
		if err := r.handler.Reload(r.load("namespace: shop\n" + acmeRoute(jsonID))); err != nil {
			t.Fatal(err)
		}
		if a := r.expect(r.acme(`{"id":"evt_1"}`), 200, "replay"); a.body != "held" {
			t.Errorf("kept by the rules that it began with would be %q, not %q", "held", a.body)
		}
	})
}

func TestStopping(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("who is in hand finishes, who waits or comes is sent away", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 10s"))
			arrived, release := r.app.hold(t)
			first := r.later(r.acme(`{"id":"evt_1"}`))
			<-arrived
			closed := make(chan error, 1)
			go func() { closed <- r.gate.Close(context.Background()) }()
			eventually(t, func() bool { a := r.send(r.acme(`{"id":"evt_2"}`)); return a.status == 503 && a.result == "overload" })
			if a := r.send(r.acme(`{"id":"evt_2"}`)); a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			r.expect(r.post("/hooks/acme", "{}"), 401, "unverified")
			release()
			if a := <-first; a.status != 200 || a.result != "fresh" {
				t.Errorf("what was in hand: %d %q", a.status, a.result)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			r.expect(r.post("/pass", "{}"), 200, "")
		})
		t.Run("what is left at the deadline is unknown", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			arrived, _ := r.app.hold(t)
			first := r.later(r.acme(`{"id":"evt_1"}`))
			inApp := <-arrived
			over, cancel := context.WithCancel(context.Background())
			cancel()
			if err := r.gate.Close(over); err != nil {
				t.Error(err)
			}
			if a := <-first; a.status != 502 || a.result != "unknown" {
				t.Errorf("got %d %q", a.status, a.result)
			}
			<-inApp.Context().Done()
			if c := r.claim("acme"); c.State != lock.StateUnknown || c.Reason != lock.ReasonShutdown {
				t.Errorf("the claim is %s (%s)", c.State, c.Reason)
			}
		})
	})
	t.Run("what goes on without a claim is cut", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\non_missing_key: forward"))
		arrived, _ := r.app.hold(t)
		first := r.later(r.acme(`{}`))
		inApp := <-arrived
		r.handler.Cut()
		<-inApp.Context().Done()
		if a := <-first; a.status != 502 || a.result != "unknown" {
			t.Errorf("got %d %q", a.status, a.result)
		}
	})
}
