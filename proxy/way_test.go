package proxy_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestWay(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("fresh, then replay", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), stripeRoute)
			first := r.expect(r.stripe(`{"id":"evt_1"}`), 200, "fresh")
			again := r.expect(r.stripe(`{"id":"evt_1"}`), 200, "replay")
			if first.body != again.body || r.app.count() != 1 {
				t.Errorf("%q, then %q, after %d hits", first.body, again.body, r.app.count())
			}
			if again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
				t.Error("a replay, and nothing else, must say that it is one")
			}
			if n := r.counts(`oncegate_duplicates_total{route="stripe"}`); n != "1" {
				t.Errorf("%s duplicates were counted, want 1", n)
			}
		})
		t.Run("B17 bytes reach the app as they came", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute("key: [{header: X-Id}]"))
			bodies := []string{
				"{}\n", "{\r\n}\r\n", "\xef\xbb\xbf{}", "{\t}", `{"a":"\/\u00e9"}`, "caf\xe9", "", "\x00\xff", strings.Repeat("x", 1<<20),
			}
			for i, body := range bodies {
				for j, one := range []bool{false, true} { // whole, and in chunks of one byte
					if one && len(body) > 100 {
						continue
					}
					req := r.acme(body, "X-Id", fmt.Sprint(i, "-", j), "Content-Type", "text/x; charset=iso-8859-1")
					if one {
						req.Body, req.ContentLength = io.NopCloser(oneByte{strings.NewReader(body)}), -1
					}
					r.expect(req, 200, "fresh")
					got := r.app.last(t)
					if got.body != body || got.header.Get("Content-Type") != "text/x; charset=iso-8859-1" {
						t.Errorf("body %d: the app got %.40q as %q", i, got.body, got.header.Get("Content-Type"))
					}
					if got.length != int64(len(body)) || got.chunked {
						t.Errorf("body %d: its length was said to be %d (chunked: %v), not %d", i, got.length, got.chunked, len(body))
					}
				}
			}
		})
	})
}

type oneByte struct{ io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:min(1, len(p))]) }

func TestAppIsTold(t *testing.T) {
	r := newRig(t, newApp(t), newMem(), acmeRoute("key: [{json: /id}]\nscope: s"))
	random := make([]byte, 2000)
	rand.Read(random)
	long := base64.RawURLEncoding.EncodeToString(random)
	for id, want := range map[string]string{
		"evt_1":                  "s:evt_1",
		"a b/c%":                 "s:a%20b%2Fc%25",
		"ünï\u0001":              "s:%C3%BCn%C3%AF%01",
		"#7":                     "s:%237",
		strings.Repeat("x", 256): "s:" + strings.Repeat("x", 256),
		long:                     "s:sha256-" + sha(long),
		strings.Repeat("x", 257): "s:sha256-" + sha(strings.Repeat("x", 257)),
	} {
		body, err := json.Marshal(map[string]string{"id": id})
		if err != nil {
			t.Fatal(err)
		}
		r.expect(r.acme(string(body)), 200, "fresh")
		if got := r.app.last(t).header["Oncegate-Event"]; len(got) != 1 || got[0] != want {
			t.Errorf("of %.20q the app was told %.100q, want %.100q", id, got, want)
		}
	}
	t.Run("a number is another key than its text", func(t *testing.T) {
		r.expect(r.acme(`{"id":7}`), 200, "fresh")
		if got := r.app.last(t).header.Get("Oncegate-Event"); got != "s:#7" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("the attempt's number", func(t *testing.T) {
		r.app.say(500, "")
		for _, want := range []string{"1", "2", "3"} {
			r.expect(r.acme(`{"id":"evt_n"}`), 500, "failed")
			if got := r.app.last(t).header["Oncegate-Attempt"]; len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %s", got, want)
			}
		}
		r.app.answer(nil)
	})
	t.Run("nobody else says so", func(t *testing.T) {
		forged := []string{"Oncegate-Event", "Oncegate_Event", "oncegate-event", "ONCEGATE_ATTEMPT", "Oncegate.Attempt", "Oncegate-Anything", "oncegate_Result"}
		header := []string{"POST /hooks/acme HTTP/1.1", "Host: h", "X-Sig: " + mac(secret, `{"id":"evt_2"}`)}
		pass := []string{"POST /other HTTP/1.1", "Host: h"}
		for _, name := range forged {
			header, pass = append(header, name+": forged"), append(pass, name+": forged")
		}
		for _, lines := range [][]string{header, pass} {
			if s := r.raw(`{"id":"evt_2"}`, lines...); s.status != 200 {
				t.Fatalf("got %d %v", s.status, s.err)
			}
			for name, values := range r.app.last(t).header {
				if strings.Contains(strings.Join(values, " "), "forged") {
					t.Errorf("%s: the app got %s: %s", lines[0], name, values)
				}
			}
		}
	})
}

func TestRequestUntouched(t *testing.T) {
	r := newRig(t, newApp(t), newMem(), acmeRoute("key: [{header: X-Id}]"))
	ask := func(id, first string, more ...string) answered {
		return r.raw("{}", append([]string{first, "X-Id: " + id, "X-Sig: " + mac(secret, "{}")}, more...)...)
	}
	t.Run("B76 Host, X-Forwarded-* and all other lines", func(t *testing.T) {
		lines := []string{
			"Host: Pub.Example:8443", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 5.6.7.8", "X-Forwarded-Proto: https",
			"X-Forwarded-Host: a", "Forwarded: for=1.2.3.4", "X-Real-Ip: 1.2.3.4", "Cookie: a=1", "Cookie: b=2",
			"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Content-Encoding: br",
		}
		if s := ask("76", "POST /hooks/acme HTTP/1.1", lines...); s.status != 200 {
			t.Fatalf("got %d %v", s.status, s.err)
		}
		got := r.app.last(t)
		if got.host != "Pub.Example:8443" {
			t.Errorf("Host is %q", got.host)
		}
		want := http.Header{
			"X-Id": {"76"}, "X-Sig": {mac(secret, "{}")}, "Content-Length": {"2"},
			"Oncegate-Event": {"acme:76"}, "Oncegate-Attempt": {"1"},
		}
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			want[name] = append(want[name], value)
		}
		for name, values := range want {
			if fmt.Sprint(got.header[name]) != fmt.Sprint(values) {
				t.Errorf("%s is %q, want %q", name, got.header[name], values)
			}
		}
		for name := range got.header {
			if want[name] == nil {
				t.Errorf("the app got %s: %q besides", name, got.header[name])
			}
		}
	})
	t.Run("B48 the target, byte for byte", func(t *testing.T) {
		for i, target := range []string{
			"/hooks/acme?a=%zz&b;c", "//hooks//acme/", "/hooks%2Facme", "/hooks/./acme", "/x/../hooks/acme", "/index.php/hooks/acme",
			"/hooks/acm%65", "http://other.example/hooks/acme?q", "/hooks/acme%00", "/hooks/acme#f",
		} {
			if s := ask(fmt.Sprint("48-", i), "POST "+target+" HTTP/1.1", "Host: h"); s.status != 200 || s.result != "fresh" {
				t.Errorf("%s: got %d %q %v %s", target, s.status, s.result, s.err, s.body)
			} else if got := r.app.last(t).target; got != target {
				t.Errorf("%s became %s", target, got)
			}
		}
		if got := r.app.last(t).host; got != "h" {
			t.Errorf("the host became %q", got)
		}
	})
	t.Run("B48 no form of the path goes round the route", func(t *testing.T) {
		before := r.app.count()
		for _, target := range []string{
			"/hooks/acme", "/hooks/acme/", "//hooks/acme", "/hooks%2Facme", "/hooks%2facme", "/x/../hooks/acme", "/hooks/acme%00", "/index.php/hooks/acme",
			"/index.phphooks/acme", "http://h/hooks/acme", "https://h/hooks//acme", "/hooks/acme?x", "/hooks/acme#x", "/%68ooks/acme", "/hooks/x/%2e%2e/acme",
		} {
			if s := r.raw("{}", "POST "+target+" HTTP/1.1", "Host: h", "X-Id: 1"); s.status != 401 || s.result != "unverified" {
				t.Errorf("%s: got %d %q %v", target, s.status, s.result, s.err)
			}
		}
		for _, target := range []string{"http:/hooks/acme", "x:hooks/acme"} {
			if s := r.raw("{}", "POST "+target+" HTTP/1.1", "Host: h", "X-Id: 1", "X-Sig: "+mac(secret, "{}")); s.status != 400 {
				t.Errorf("%s: got %d %q %v", target, s.status, s.result, s.err)
			}
		}
		r.hits(before)
		for _, target := range []string{"/HOOKS/acme", "/hooks/acme;x", "/hooks/acme%2500", "/hooks\\acme"} {
			if s := r.raw("{}", "POST "+target+" HTTP/1.1", "Host: h"); s.status != 200 || s.result != "" || r.app.last(t).target != target {
				t.Errorf("%s, which the app's router takes for another path, was not passed through: %d %q", target, s.status, s.result)
			}
		}
	})
	t.Run("methods", func(t *testing.T) {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			req := r.post("/hooks/acme?hub.challenge=x", "")
			req.Method = method
			r.expect(req, 200, "")
			if got := r.app.last(t); got.method != method || got.target != "/hooks/acme?hub.challenge=x" {
				t.Errorf("the app got %s %s", got.method, got.target)
			}
		}
		before := r.app.count()
		for _, method := range []string{"PUT", "DELETE", "PATCH", "PURGE", "post"} {
			req := r.acme("{}", "X-Id", "405")
			req.Method = method
			if s := r.expect(req, 405, "malformed"); s.header.Get("Allow") != "POST" {
				t.Errorf("%s: allowed is %q", method, s.header["Allow"])
			}
		}
		r.hits(before)
	})
	t.Run("B48 GET with a body, or by another name", func(t *testing.T) {
		before := r.app.count()
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			with := r.post("/hooks/acme", `{"id":"1"}`)
			streamed := r.post("/hooks/acme", `{"id":"1"}`)
			streamed.ContentLength = -1
			pretends := r.post("/hooks/acme?id=1", "", "X_http_method-override", "POST")
			for _, req := range []*http.Request{with, streamed, pretends} {
				req.Method = method
				if s := r.expect(req, 405, "malformed"); s.header.Get("Allow") != "POST" {
					t.Errorf("%s: allowed is %q", method, s.header["Allow"])
				}
			}
		}
		r.hits(before)
	})
	t.Run("Expect is answered here", func(t *testing.T) {
		c := r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Id: e\r\nX-Sig: " + mac(secret, "{}") + "\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		line, _ := c.in.ReadString('\n')
		if line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q", line)
		}
		c.in.ReadString('\n')
		c.say("{}")
		if s := c.hear(t); s.status != 200 || r.app.last(t).header.Get("Expect") != "" {
			t.Errorf("got %d %v; the app was told to expect %q", s.status, s.err, r.app.last(t).header["Expect"])
		}
		c = r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Id: e\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		if s := c.hear(t); s.status != 401 {
			t.Errorf("a stranger was answered %d %v, want 401 and no invitation", s.status, s.err)
		}
	})
	t.Run("no deadline is left of a request", func(t *testing.T) {
		const soon = 50 * time.Millisecond
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nwait: 10s"))
		r.handler.SetTimes(soon, soon)
		c := r.dial()
		body := `{"id":"evt_0"}`
		ask := "POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, body) + "\r\nContent-Length: 14\r\n\r\n" + body
		for i, request := range []string{ask, "GET /pass HTTP/1.1\r\nHost: h\r\n\r\n", ask} {
			c.say(request)
			if s := c.hear(t); s.status != 200 {
				t.Fatalf("request %d: %d %v", i, s.status, s.err)
			}
			time.Sleep(2 * soon) // past all that was set for the request
		}
		arrived, release := r.app.hold(t)
		first := r.later(r.acme(`{"id":"evt_1"}`))
		<-arrived
		second := r.later(r.acme(`{"id":"evt_1"}`))
		r.inHand(2)
		time.Sleep(2 * soon)
		release()
		if s := <-first; s.result != "fresh" {
			t.Errorf("the first got %d %q %v", s.status, s.result, s.err)
		}
		if s := <-second; !is(s.result, "waited") {
			t.Errorf("the second got %d %q %v", s.status, s.result, s.err)
		}
	})
}
