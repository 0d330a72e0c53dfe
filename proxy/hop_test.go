package proxy_test

import (
	"io"
	"strconv"
	"strings"
	"testing"
)

func TestHopByHop(t *testing.T) {
	const body = `{"id":"evt_1"}`
	route := "\nroutes:\n  github: {path: /github, provider: github, secrets: " + secret + "}\n"
	ask := func(r *rig, id string, lines ...string) answered {
		return r.raw(body, append([]string{
			"POST /github HTTP/1.1", "Host: h", "X-Hub-Signature-256: sha256=" + mac(secret, body),
			"X-GitHub-Delivery: " + id, "X-GitHub-Event: push", "X-Forwarded-For: 1.2.3.4",
		}, lines...)...)
	}
	t.Run("B45 a Connection line can't take away what was verified and claimed", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), route)
		for _, line := range []string{
			"Connection: close, X-Forwarded-For, Oncegate-Attempt, X-Hub-Signature-256, X-GitHub-Delivery",
			"Connection: x-github-delivery", "Connection: X-HUB-SIGNATURE-256",
			"Connection:\r\nConnection: X-GitHub-Delivery", "Connection: keep-alive,, X-GitHub-Delivery ,",
		} {
			if s := ask(r, "1", line); s.status != 400 || s.result != "malformed" {
				t.Errorf("%q: got %d %q", line, s.status, s.result)
			}
		}
		r.hits(0)
		if r.records() != 0 {
			t.Error("something was stored")
		}
	})
	t.Run("B45 ordinary headers that it names are taken away, oncegate's own never", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), route)
		if s := ask(r, "2", "Connection: Oncegate-Attempt, oncegate-event, Content-Length, Host, X-Forwarded-For, X-None"); s.status != 200 || s.result != "fresh" {
			t.Fatalf("got %d %q %s", s.status, s.result, s.body)
		}
		got := r.app.last(t)
		if got.header.Get("Oncegate-Attempt") != "1" || got.header.Get("Oncegate-Event") != "github:2" || got.body != body || got.host != "h" {
			t.Errorf("the app got %v", got)
		}
		if got.header["X-Forwarded-For"] != nil || got.header.Get("X-Github-Event") != "push" {
			t.Errorf("the app got %v", got.header)
		}
	})
	t.Run("B46 a route never upgrades", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), route)
		for i, upgrade := range []string{"h2c", "websocket"} {
			if s := ask(r, "u"+upgrade, "Connection: Upgrade, HTTP2-Settings", "Upgrade: "+upgrade, "HTTP2-Settings: AAMAAABk"); s.status != 200 {
				t.Errorf("got %d %v", s.status, s.err)
			}
			r.hits(i + 1)
			for _, name := range []string{"Upgrade", "Connection", "Http2-Settings"} {
				if v := r.app.last(t).header[name]; v != nil {
					t.Errorf("the app got %s: %s", name, v)
				}
			}
		}
	})
	t.Run("B46 a 101 on a route is unknown, and tunnels nothing", func(t *testing.T) {
		for _, more := range []string{acmeRoute(jsonID), acmeRoute(jsonID + "\nhandshakes: [{name: h, when: {json: /id, present: true}}]"), acmeRoute(jsonID + "\nmode: observe")} {
			for _, to := range []string{"h2c", "websocket"} {
				raw := newRawApp(t, always("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+to+"\r\n\r\n"))
				r := startRig(t, raw.url, newMem(), "namespace: shop\n"+more)
				s := r.raw(body, "POST /hooks/acme HTTP/1.1", "Host: h", "X-Sig: "+mac(secret, body), "Connection: Upgrade", "Upgrade: "+to)
				if s.status != 502 || s.result != "unknown" || raw.count() != 1 {
					t.Errorf("%s: got %d %q %v after %d", to, s.status, s.result, s.err, raw.count())
				}
			}
		}
	})
	t.Run("B46 h2c past the routes", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), route)
		s := r.raw("", "GET / HTTP/1.1", "Host: h", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
		if s.status != 200 || r.app.last(t).header["Upgrade"] != nil {
			t.Errorf("got %d; the app got %v", s.status, r.app.last(t).header)
		}
	})
	t.Run("B51 a WebSocket goes through the whole handler", func(t *testing.T) {
		raw := newRawApp(t, func(c *wire) {
			c.request()
			c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
			io.Copy(c, c.in)
		})
		r := startRig(t, raw.url, newMem(), "namespace: shop\n"+route)
		c := r.dial()
		c.say("GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n")
		c.until(t, "\r\n\r\nhello")
		c.say("ping\xff")
		c.until(t, "ping\xff")
		if n, _ := r.handler.InHand(); n != 0 {
			t.Errorf("%d deliveries are in hand", n)
		}
		r.handler.Cut()
		if _, err := io.ReadAll(c.in); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("when it was cut: %v", err)
		}
		eventually(t, func() bool { return strings.Contains(r.scrape(), `http_response_status_code="101"`) })
	})
}

func TestHandshakes(t *testing.T) {
	slack := func(r *rig, body, key string) answered {
		at := strconv.FormatInt(now().Unix(), 10)
		return r.send(r.post("/slack", body, "X-Slack-Request-Timestamp", at, "X-Slack-Signature", "v0="+mac(key, "v0:"+at+":"+body)))
	}
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		const challenge = `{"type":"url_verification","challenge":"c1"}`
		t.Run("B75 signed ones reach the app each time", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), "\nroutes:\n  slack: {path: /slack, provider: slack, secrets: "+secret+"}\n")
			for i := range 2 {
				if s := slack(r, challenge, secret); s.status != 200 || s.result != "handshake" {
					t.Errorf("got %d %q", s.status, s.result)
				}
				r.hits(i + 1)
			}
			if got := r.app.last(t); got.body != challenge || got.header["Oncegate-Event"] != nil {
				t.Errorf("the app got %v", got)
			}
			if s := slack(r, challenge, "wrong"); s.status != 401 {
				t.Errorf("a forged one: %d", s.status)
			}
			if s := r.send(r.post("/slack", challenge)); s.status != 401 || strings.Contains(s.body, "c1") {
				t.Errorf("an unsigned one: %d %s", s.status, s.body)
			}
			if s := slack(r, `{"type":"url_verification","challenge":"c1","event_id":"Ev1"}`, secret); s.result != "fresh" {
				t.Errorf("one with an event ID: %q", s.result)
			}
			r.hits(3)
			if n := r.records(); n != 1 {
				t.Errorf("%d claims, want that of the event alone", n)
			}
		})
		t.Run("B75 unsigned ones, where the route says so, in that shape alone", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+`
handshakes:
  - {name: hello, unsigned: true, when: {all: [{json: /type, equals: hello}, {json: /id, present: false}]}}
  - {name: signed, when: {json: /type, equals: signed}}`))
			for i, body := range []string{`{"type":"hello"}`, `{"type":"hello","x":1}`} {
				r.expect(r.post("/hooks/acme", body), 200, "handshake")
				r.hits(i + 1)
			}
			for _, body := range []string{`{"type":"hello","id":"evt_1"}`, `{"type":"Hello"}`, `{"type":"hello","type":"x"}`, `{}`, `{"type":["hello"]}`, `{"type":"signed"}`, `hello`, ``} {
				r.expect(r.post("/hooks/acme", body), 401, "unverified")
			}
			r.hits(2)
			if r.records() != 0 {
				t.Error("something was stored")
			}
		})
	})
	t.Run("B75 a challenge by GET is the app's", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		for i := range 2 {
			req := r.post("/hooks/acme?hub.mode=subscribe&hub.challenge=x", "")
			req.Method = "GET"
			r.expect(req, 200, "")
			r.hits(i + 1)
		}
	})
	t.Run("the app's failure at a handshake is told", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nhandshakes: [{name: h, when: {json: /hello, present: true}}]"))
		r.app.say(418, "no")
		if s := r.expect(r.acme(`{"hello":1}`), 418, "handshake"); s.body != "no" {
			t.Errorf("got %q", s.body)
		}
		r.app.Close()
		r.expect(r.acme(`{"hello":1}`), 502, "unreached")
	})
}
