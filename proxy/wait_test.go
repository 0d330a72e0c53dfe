package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"oncegate/lock"
)

func TestWaiting(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B30 duplicates wait and get the one answer", func(t *testing.T) {
			one := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 10s"))
			other := newRig(t, one.app, one.store, acmeRoute(jsonID+"\nwait: 10s"))
			arrived, release := one.app.hold(t)
			first := one.later(one.acme(`{"id":"evt_1"}`))
			<-arrived
			var waiting []<-chan answered
			for i := range 20 {
				r := []*rig{one, other}[i%2]
				waiting = append(waiting, r.later(r.acme(`{"id":"evt_1"}`)))
			}
			one.inHand(11)
			other.inHand(10)
			release()
			ended := time.Now()
			if s := <-first; s.status != 200 || s.result != "fresh" || s.body != "held" {
				t.Errorf("the first got %d %q %q", s.status, s.result, s.body)
			}
			for _, c := range waiting {
				if s := <-c; s.status != 200 || !is(s.result, "waited") || s.body != "held" || s.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("one got %d %q %q %v", s.status, s.result, s.body, s.err)
				}
			}
			if took := time.Since(ended); took > 3*time.Second {
				t.Errorf("they were told after %v", took)
			}
			one.hits(1)
		})
		t.Run("a client that makes its own keys is told 409 while its first request runs, and may leave the key out", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), "\nroutes:\n  orders: {path: /api/orders, provider: idempotency-key, caller: {header: Authorization}, wait: 100ms}\n")
			arrived, release := r.app.hold(t)
			order := func() *http.Request {
				return r.post("/api/orders", "{}", "Idempotency-Key", `"k"`, "Authorization", "Bearer a")
			}
			first := r.later(order())
			<-arrived
			r.expect(order(), 409, "busy")
			release()
			if s := <-first; s.result != "fresh" {
				t.Errorf("the first got %d %q", s.status, s.result)
			}
			r.expect(order(), 200, "replay")
			r.expect(r.post("/api/orders", "{}", "Authorization", "Bearer a"), 200, "unclaimed")
		})
		t.Run("B30 who has waited enough is told when to come again", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 200ms\nlease: 30s"))
			arrived, release := r.app.hold(t)
			first := r.later(r.acme(`{"id":"evt_1"}`))
			<-arrived
			start := time.Now()
			s := r.expect(r.acme(`{"id":"evt_1"}`), 503, "busy")
			if took := time.Since(start); took < 200*time.Millisecond || took > 5*time.Second {
				t.Errorf("it waited %v, want 200ms", took)
			}
			if after, err := strconv.Atoi(s.header.Get("Retry-After")); err != nil || after < 1 || after > 30 {
				t.Errorf("Retry-After is %q", s.header["Retry-After"])
			}
			release()
			if s := <-first; s.result != "fresh" {
				t.Errorf("the first got %d %q", s.status, s.result)
			}
			r.expect(r.acme(`{"id":"evt_1"}`), 200, "replay")
			r.hits(1)
		})
		t.Run("of those who wait for a failure one is the next attempt", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 10s"))
			arrived, fail := r.app.hold(t)
			r.app.answer(func(h http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					if req.Header.Get("Oncegate-Attempt") == "1" {
						w = failing{w}
					}
					h(w, req)
				}
			}(r.app.handler))
			first := r.later(r.acme(`{"id":"evt_1"}`))
			<-arrived
			var waiting []<-chan answered
			for range 5 {
				waiting = append(waiting, r.later(r.acme(`{"id":"evt_1"}`)))
			}
			r.inHand(6)
			fail()
			if s := <-first; s.status != 503 || s.result != "failed" {
				t.Errorf("the first got %d %q", s.status, s.result)
			}
			results := map[string]int{}
			for _, c := range waiting {
				s := <-c
				results[fmt.Sprint(s.status, s.result)]++
			}
			if results["200fresh"] != 1 || results["200waited"] != 4 {
				t.Errorf("they got %v", results)
			}
			r.hits(2)
		})
		t.Run("held until an operator decides", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\non_unknown: hold"))
			r.app.say(500, "")
			r.expect(r.acme(`{"id":"evt_1"}`), 500, "failed")
			if s := r.expect(r.acme(`{"id":"evt_1"}`), 503, "held"); s.header.Get("Retry-After") != "300" {
				t.Errorf("Retry-After is %q", s.header["Retry-After"])
			}
			r.hits(1)
			whole, err := r.store.Read(context.Background(), []lock.Key{r.claim("acme").Key})
			if err != nil || len(whole[0].Request) == 0 {
				t.Errorf("the request was not kept: %v", err)
			}
		})
		t.Run("the request is kept while the outcome is unknown, and only then", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			for _, step := range []struct {
				says int
				kept bool
			}{{422, false}, {500, true}, {200, false}} {
				r.app.say(step.says, "")
				r.send(r.acme(`{"id":"evt_1"}`))
				stands, err := r.store.Read(context.Background(), []lock.Key{r.claim("acme").Key})
				if err != nil || (stands[0].Request != nil) != step.kept {
					t.Errorf("after %d, %d bytes are kept (%v)", step.says, len(stands[0].Request), err)
				}
			}
		})
	})
}

// failing makes 503 of any answer.
type failing struct{ http.ResponseWriter }

func (w failing) Write(b []byte) (int, error) {
	w.WriteHeader(503)
	return w.ResponseWriter.Write(b)
}

func TestSenderLeaves(t *testing.T) {
	const body = `{"id":"evt_1"}`
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B34 the attempt goes on, and its answer is there for the next try", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 10s"))
			arrived, release := r.app.hold(t)
			ctx, leave := context.WithCancel(t.Context())
			first := r.later(r.acme(body).WithContext(ctx))
			inApp := <-arrived
			leave()
			if s := <-first; s.err == nil {
				t.Fatalf("the sender did not leave: %v", s)
			}
			second := r.later(r.acme(body))
			r.inHand(2)
			select {
			case <-inApp.Context().Done():
				t.Error("the app's request was cut")
			default:
			}
			release()
			if s := <-second; s.status != 200 || !is(s.result, "waited") || s.body != "held" {
				t.Errorf("the second try got %d %q %q", s.status, s.result, s.body)
			}
			r.expect(r.acme(body), 200, "replay")
			r.hits(1)
			// The first's outcome says what came of it, and that nobody was left.
			eventually(t, func() bool { return r.counts(`oncegate_deliveries_total{result="fresh",route="acme"}`) == "1" })
			for line := range strings.Lines(r.log.String()) {
				if strings.Contains(line, `"result":"fresh"`) && (strings.Contains(line, `"status"`) || !strings.Contains(line, `"error":"canceled"`)) {
					t.Errorf("logged was %s", line)
				}
			}
		})
		t.Run("B34 many times, and nothing is left behind", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 10s"))
			for i := range 50 {
				id := fmt.Sprintf(`{"id":"evt_%d"}`, i)
				arrived, release := r.app.hold(t)
				ctx, leave := context.WithCancel(t.Context())
				first := r.later(r.acme(id).WithContext(ctx))
				<-arrived
				leave()
				<-first
				release()
				if s := r.send(r.acme(id)); s.status != 200 || s.body != "held" {
					t.Fatalf("event %d: %d %q %v", i, s.status, s.body, s.err)
				}
			}
			r.hits(50)
			r.inHand(0)
		})
		t.Run("B34 one that waits leaves, and the others wait on", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nwait: 10s"))
			arrived, release := r.app.hold(t)
			first := r.later(r.acme(body))
			<-arrived
			ctx, leave := context.WithCancel(t.Context())
			second, third := r.later(r.acme(body).WithContext(ctx)), r.later(r.acme(body))
			r.inHand(3)
			leave()
			<-second
			r.inHand(2)
			release()
			if s := <-first; s.result != "fresh" {
				t.Errorf("the first got %q", s.result)
			}
			if s := <-third; !is(s.result, "waited") {
				t.Errorf("the third got %q", s.result)
			}
			r.hits(1)
		})
	})
	t.Run("B34 a sender that only stops sending gets its answer", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		arrived, release := r.app.hold(t)
		c := r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		<-arrived
		c.Conn.(*net.TCPConn).CloseWrite()
		release()
		if s := c.hear(t); s.status != 200 || s.result != "fresh" || s.body != "held" {
			t.Errorf("got %d %q %q %v", s.status, s.result, s.body, s.err)
		}
	})
	t.Run("B34 a sender that stops sending while it waits is not told of a success", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nwait: 10s"))
		arrived, release := r.app.hold(t)
		first := r.later(r.acme(body))
		<-arrived
		c := r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		r.inHand(2)
		c.Conn.(*net.TCPConn).CloseWrite()
		if s := c.hear(t); s.err == nil && s.status != 503 {
			t.Errorf("got %d %q", s.status, s.result)
		}
		release()
		<-first
	})
	t.Run("B34 what is forwarded unclaimed goes on too", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\non_missing_key: forward"))
		arrived, release := r.app.hold(t)
		ctx, leave := context.WithCancel(t.Context())
		first := r.later(r.acme("{}").WithContext(ctx))
		inApp := <-arrived
		leave()
		<-first
		release()
		r.inHand(0)
		if inApp.Context().Err() != nil && r.app.count() != 1 {
			t.Error("the app's request was cut")
		}
		eventually(t, func() bool { return r.counts(`oncegate_deliveries_total{result="unclaimed",route="acme"}`) == "1" })
	})
	t.Run("B34 what passes through is cut", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		arrived, _ := r.app.hold(t)
		ctx, leave := context.WithCancel(t.Context())
		first := r.later(r.post("/pass", "{}").WithContext(ctx))
		inApp := <-arrived
		leave()
		<-first
		<-inApp.Context().Done()
	})
	for name, partial := range map[string]string{
		"within the head":         "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Si",
		"before the body":         "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: 1000\r\n\r\n",
		"within the body":         "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: 1000\r\n\r\n" + body,
		"within a chunk":          "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + body,
		"before the last chunk":   "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n" + body + "\r\n",
		"with a chunk that isn't": "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n" + body + "\r\nzz\r\n",
	} {
		t.Run("B53 a delivery that ends "+name, func(t *testing.T) {
			r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
			c := r.dial()
			c.say(partial)
			c.Conn.(*net.TCPConn).CloseWrite()
			if s := c.hear(t); s.err == nil && s.status != 400 {
				t.Errorf("got %d %q", s.status, s.result)
			}
			r.hits(0)
			if r.records() != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func TestBodies(t *testing.T) {
	r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nmax_body: 1000B"))
	fill := func(id string, n int) string {
		start := `{"id":"` + id + `","x":"`
		return start + fmt.Sprintf("%0*d", n-len(start)-2, 0) + `"}`
	}
	chunked := func(req *http.Request) *http.Request {
		req.Body, req.ContentLength = io.NopCloser(io.MultiReader(req.Body)), -1
		return req
	}
	t.Run("B53 the cap is exact", func(t *testing.T) {
		r.expect(r.acme(fill("1", 1000)), 200, "fresh")
		r.expect(chunked(r.acme(fill("2", 1000))), 200, "fresh")
		r.expect(r.acme(fill("3", 1001)), 413, "malformed")
		r.expect(chunked(r.acme(fill("4", 1001))), 413, "malformed")
		r.expect(chunked(r.acme(`{"id":"5"}`+strings.Repeat(" ", 2<<20))), 413, "malformed")
		r.hits(2)
	})
	t.Run("B53 what follows the JSON", func(t *testing.T) {
		r.expect(r.acme(`{"id":"6"}   `), 200, "fresh")
		r.expect(r.acme(`{"id":"7"}{}`), 400, "malformed")
		r.hits(3)
	})
	t.Run("B53 a body that comes too slowly is given up, at once", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		r.handler.SetTimes(100*time.Millisecond, time.Minute)
		c := r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, "x") + "\r\nContent-Length: 1000\r\n\r\n{")
		if s := c.hear(t); s.status != 400 || s.result != "malformed" {
			t.Errorf("got %d %q %v", s.status, s.result, s.err)
		}
		r.hits(0)
	})
	t.Run("a stranger that stalls is answered and holds nothing", func(t *testing.T) {
		for _, head := range []string{"X-None: 1", "X-Sig: zz"} {
			c := r.dial()
			c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\n" + head + "\r\nContent-Length: 100\r\n\r\n")
			if s := c.hear(t); s.status != 401 || s.result != "unverified" {
				t.Errorf("got %d %q %v", s.status, s.result, s.err)
			}
		}
		r.inHand(0)
	})
	t.Run("a sender that takes no answer is given up", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		r.handler.SetTimes(time.Minute, 100*time.Millisecond)
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) { io.CopyN(w, zeros{}, 64<<20) })
		body := `{"id":"evt_1"}`
		c := r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: 14\r\n\r\n" + body)
		eventually(t, func() bool { return r.app.count() == 1 })
		r.inHand(0) // while it is still connected
		c.Close()
		r.expect(r.acme(body), 200, "replay")
	})
}
