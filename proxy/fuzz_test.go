package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzHandler puts raw requests through the handler: whatever they look like, it
// does not panic, what reaches the app's webhook is signed and claimed, and what
// is signed reaches it once.
func FuzzHandler(f *testing.F) {
	const body = `{"id":"evt_1"}`
	for _, seed := range []struct{ target, header, body string }{
		{"/hooks/acme", "X-A: b", body}, {"//hooks/./acme/?a", "X-A: b", "{}"}, {"/hooks%2Facme%00", "Connection: X-Sig", body},
		{"/index.php/hooks/acme", "Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"}, {"http://x/hooks/acme", "X_Sig: a\r\nOncegate_Event: b", ""},
		{"/other", "Upgrade: h2c\r\nConnection: Upgrade", ""}, {"/hooks/acme", "Expect: 100-continue\r\nContent-Type: application/x-www-form-urlencoded", "id=1"},
		{"x:hooks/acme", "X-Sig: zz\r\nX-Sig: 00", "\x00"}, {"*", "X-A: b", ""}, {"/hooks/acme#", "Content-Encoding: gzip", "\x1f\x8b"},
	} {
		f.Add(seed.target, seed.header, seed.body, false)
		f.Add(seed.target, seed.header, seed.body, true)
	}
	r := newRig(f, newApp(f), newMem(), acmeRoute(jsonID+"\nmax_body: 4KiB\nupstream_timeout: 5s"))
	events := map[string]bool{} // that reached the app, ever
	f.Fuzz(func(t *testing.T, target, header, body string, sign bool) {
		if sign {
			header += "\r\nX-Sig: " + mac(secret, body)
		}
		for range 2 {
			c, err := net.Dial("tcp", r.front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(5 * time.Second))
			io.WriteString(c, "POST "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"+header+"\r\n")
			if !strings.Contains(strings.ToLower(header), "transfer-encoding") {
				io.WriteString(c, "Content-Length: "+strconv.Itoa(len(body))+"\r\n")
			}
			io.WriteString(c, "\r\n"+body)
			c.(*net.TCPConn).CloseWrite()
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			c.Close()
		}
		eventually(t, func() bool { n, _ := r.handler.InHand(); return n == 0 })
		if strings.Contains(r.log.take(), "panic") {
			t.Error("the handler panicked")
		}
		for _, hit := range r.app.take() {
			event := hit.header.Get("Oncegate-Event")
			if event == "" {
				if hit.method == http.MethodPost && routed(hit.target) {
					t.Errorf("unclaimed, the app got %s %s", hit.method, hit.target)
				}
				continue
			}
			if hit.header.Get("X-Sig") != mac(secret, hit.body) {
				t.Errorf("unsigned, the app got %q", hit.body)
			}
			if events[event] {
				t.Errorf("%s reached the app twice", event)
			}
			events[event] = true
			for name := range hit.header {
				folded := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
				if strings.HasPrefix(folded, "oncegate-") && name != "Oncegate-Event" && name != "Oncegate-Attempt" {
					t.Errorf("the app got %s", name)
				}
			}
		}
	})
}

// routed reports whether a dumb router would take a target for the webhook's.
func routed(target string) bool {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	decoded, err := url.PathUnescape(target)
	return err == nil && path.Clean("/"+decoded) == "/hooks/acme"
}
