package forward_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// lines returns a request's first line, its header lines sorted, and its body.
func lines(request string) (first string, header []string, body string) {
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	first, rest, _ := strings.Cut(head, "\r\n")
	header = strings.Split(rest, "\r\n")
	slices.Sort(header)
	return first, header, body
}

func TestRequestOnTheWire(t *testing.T) {
	app := startRaw(t, always(ok))
	cl := client(t, app, forward.Options{})
	tests := []struct {
		name  string
		r     *forward.Request
		first string
		lines []string
		body  string
	}{
		{
			"B54 an exact length, and nothing of our own",
			&forward.Request{Method: "POST", Target: "/a%2Fb//c/../d;x=1?a=1;b&c=%zz", Host: "Pub.Example:8443", Body: []byte("{}\r\n\x00\xff"), Header: http.Header{
				"Stripe-Signature": {"t=1,v1=a", "t=1,v1=b"}, "Content-Type": {"text/plain; charset=iso-8859-1"}, "X-Latin": {"caf\xe9"},
			}},
			"POST /a%2Fb//c/../d;x=1?a=1;b&c=%zz HTTP/1.1",
			[]string{"Content-Length: 6", "Content-Type: text/plain; charset=iso-8859-1", "Host: Pub.Example:8443", "Stripe-Signature: t=1,v1=a", "Stripe-Signature: t=1,v1=b", "X-Latin: caf\xe9"},
			"{}\r\n\x00\xff",
		},
		{
			"B54 an empty body is said to be one",
			&forward.Request{Method: "POST", Target: "/", Host: "h"},
			"POST / HTTP/1.1", []string{"Content-Length: 0", "Host: h"}, "",
		},
		{
			"GET without a body says nothing about one",
			&forward.Request{Method: "GET", Target: "http://a/b", Host: "a"},
			"GET http://a/b HTTP/1.1", []string{"Host: a"}, "",
		},
		{
			"B45 framing and hop-by-hop headers are not the sender's to say",
			&forward.Request{Method: "POST", Target: "/", Host: "h", Body: []byte("abc"), Header: http.Header{
				"Content-Length": {"99"}, "Transfer-Encoding": {"chunked"}, "Host": {"evil"}, "Connection": {"Content-Length"}, "Expect": {"100-continue"},
				"Upgrade": {"h2c"}, "Http2-Settings": {"AAA"}, "Trailer": {"X"}, "Te": {"trailers"}, "Keep-Alive": {"1"}, "proxy-connection": {"x"}, "X-Kept": {""},
			}},
			"POST / HTTP/1.1", []string{"Content-Length: 3", "Host: h", "X-Kept: "}, "abc",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(app.seen())
			mustRead(t, cl, tt.r)
			first, header, body := lines(app.seen()[before])
			if first != tt.first || !slices.Equal(header, tt.lines) || body != tt.body {
				t.Fatalf("the app got\n%q\n%q\n%q\nwant\n%q\n%q\n%q", first, header, body, tt.first, tt.lines, tt.body)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
	big := strings.Repeat("y", 1<<20)
	tests := []struct {
		name, answer string
		close        bool // the app closes after it
		status       int
		body         string
		broken       bool
		reused       bool
	}{
		{"a length", ok, false, 200, "ok", false, true},
		{"B43 a length, and less than that", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 40), true, 200, strings.Repeat("x", 40), true, false},
		{"chunks, trailers dropped", chunked + "2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", false, 200, "ok", false, true},
		{"B43 chunks without an end", chunked + "2\r\nok\r\n", true, 200, "ok", true, false},
		{"B43 a chunk cut short", chunked + "5\r\nok", true, 200, "ok", true, false},
		{"B43 the last chunk without its line", chunked + "2\r\nok\r\n0\r\n", true, 200, "ok", true, false},
		{"HTTP/1.0, until the end", "HTTP/1.0 200 OK\r\n\r\nok", true, 200, "ok", false, false},
		{"HTTP/1.1, until the end", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok", true, 200, "ok", false, false},
		{"a length, then close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true, 200, "ok", false, false},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", false, 204, "", false, true},
		{"204 with a length, of a body that may still come", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", false, 204, "", false, false},
		{"204 in chunks that may still come", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", false, 204, "", false, false},
		{"204 with a length of nothing", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", false, 204, "", false, true},
		{"304 in chunks that may still come", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", false, 304, "", false, false},
		{"304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, 304, "", false, true},
		{"1xx before it", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok, false, 200, "ok", false, true},
		{"a redirect is not followed", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", false, 302, "", false, true},
		{"more bytes than its length", ok + "more", false, 200, "ok", false, false},
		{"a large one", "HTTP/1.1 201 Created\r\nContent-Length: 1048576\r\n\r\n" + big, false, 201, big, false, true},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", false, 0, "", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			app := startRaw(t, func(c *rawConn) {
				for {
					if _, more := c.request(); !more {
						return
					}
					c.say(tt.answer)
					if tt.close {
						return
					}
				}
			})
			cl := client(t, app, forward.Options{})
			for range 2 {
				a, body, err := read(t, cl, post("{}"))
				if tt.broken {
					wantError(t, err, forward.Broken, true)
				} else if err != nil {
					t.Fatal(err)
				}
				if tt.status != 0 && (a.Status != tt.status || body != tt.body) {
					t.Fatalf("got %d, %d bytes; want %d, %d bytes", a.Status, len(body), tt.status, len(tt.body))
				}
			}
			if reused := app.connections() == 1; reused != tt.reused {
				t.Fatalf("connection reused: %v, want %v", reused, tt.reused)
			}
		})
	}
	t.Run("HEAD has no body", func(t *testing.T) {
		app := startRaw(t, always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"))
		cl := client(t, app, forward.Options{})
		for range 2 {
			r := post("")
			r.Method = "HEAD"
			if a, body := mustRead(t, cl, r); body != "" || a.Header.Get("Content-Length") != "2" {
				t.Fatalf("got %q, length %q", body, a.Header.Get("Content-Length"))
			}
		}
		// A sloppy app sends a body all the same, and may be late with it.
		if app.connections() != 2 {
			t.Fatal("the connection was kept")
		}
	})
	t.Run("B45 hop-by-hop headers of an answer stay here", func(t *testing.T) {
		app := startRaw(t, always("HTTP/1.1 200 OK\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 1\r\nX-B: 2\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n"))
		a, _ := mustRead(t, client(t, app, forward.Options{}), post(""))
		if len(a.Header) != 2 || !slices.Equal(a.Header["X-B"], []string{"1", "2"}) {
			t.Fatalf("got %v", a.Header)
		}
	})
	t.Run("a body given up takes its connection along", func(t *testing.T) {
		app := startRaw(t, always(ok))
		cl := client(t, app, forward.Options{})
		a, err := cl.Forward(t.Context(), post(""))
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if _, err := a.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Fatalf("reading a closed body: %v", err)
		}
		mustRead(t, cl, post(""))
		if app.connections() != 2 {
			t.Fatal("a connection with half an answer on it was reused")
		}
	})
}

// The app answers before it has read the request.
func TestEarlyAnswer(t *testing.T) {
	const refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"
	large := strings.Repeat("x", 8<<20)
	tests := []struct {
		name  string
		serve func(c *rawConn, answered <-chan bool)
	}{
		{"and reads nothing", func(c *rawConn, answered <-chan bool) {
			c.in.ReadString('\n')
			c.say(refusal)
			io.Copy(io.Discard, c.in) // lingers, as nginx does
		}},
		{"with more than the socket holds, before it reads", func(c *rawConn, answered <-chan bool) {
			c.in.ReadString('\n')
			c.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 16777216\r\n\r\n")
			c.say(strings.Repeat("y", 16<<20))
			c.in.ReadString(0)
		}},
		{"and stops reading for good", func(c *rawConn, answered <-chan bool) {
			c.in.ReadString('\n')
			c.say(refusal)
			c.Conn.(*net.TCPConn).CloseWrite()
			<-answered
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answered := make(chan bool)
			app := startRaw(t, func(c *rawConn) { tt.serve(c, answered) })
			cl := client(t, app, forward.Options{})
			a, _ := mustRead(t, cl, post(large))
			close(answered)
			if a.Status != 413 {
				t.Fatalf("got %d", a.Status)
			}
		})
	}
	t.Run("a large body arrives whole and its connection is kept", func(t *testing.T) {
		app := startRaw(t, always(ok))
		cl := client(t, app, forward.Options{})
		for range 3 {
			mustRead(t, cl, post(large))
		}
		for _, r := range app.seen() {
			if _, _, body := lines(r); body != large {
				t.Fatalf("the app got %d bytes, want %d", len(body), len(large))
			}
		}
	})
	t.Run("slow lines", func(t *testing.T) {
		app := startRaw(t, func(c *rawConn) {
			c.request()
			for _, b := range []byte(ok) {
				c.Write([]byte{b})
				time.Sleep(time.Millisecond)
			}
		})
		if _, body := mustRead(t, client(t, app, forward.Options{}), post("")); body != "ok" {
			t.Fatalf("got %q", body)
		}
	})
}

func TestUnixSocket(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "app.sock"))
	if err != nil {
		t.Fatal(err)
	}
	app := startRawOn(t, l, always(ok))
	cl := client(t, app, forward.Options{})
	for range 3 {
		mustRead(t, cl, post("{}"))
	}
	if app.connections() != 1 {
		t.Fatalf("%d connections", app.connections())
	}
}

func TestTLS(t *testing.T) {
	hits := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	}))
	var conns atomic.Int32
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.StartTLS()
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	u := forward.Upstream{Scheme: "https", Address: srv.Listener.Addr().String(), Host: "example.com", IdleTimeout: time.Minute}

	cl := clientOf(t, u, forward.Options{TLS: &tls.Config{RootCAs: roots}})
	for _, body := range []string{"a", strings.Repeat("b", 1<<20), "c"} {
		if _, got := mustRead(t, cl, post(body)); got != body {
			t.Fatalf("got %d bytes, want %d", len(got), len(body))
		}
	}
	for range 5 {
		mustRead(t, cl, post(""))
	}
	if n := conns.Load(); n > 2 { // one may go with the large body
		t.Fatalf("%d connections for a few requests one after the other", n)
	}
	t.Run("a certificate that nobody vouches for", func(t *testing.T) {
		hits = 0
		_, _, err := read(t, clientOf(t, u, forward.Options{}), post(""))
		wantError(t, err, forward.Unreached, false)
		if hits != 0 {
			t.Fatal("the app was reached")
		}
	})
	t.Run("a kept connection that the app closed", func(t *testing.T) {
		srv.CloseClientConnections()
		mustRead(t, cl, post("d"))
	})
}

func TestHeaderNames(t *testing.T) {
	t.Run("B45 every Connection line counts", func(t *testing.T) {
		h := http.Header{
			"Connection": {"", "close, X-Forwarded-For", "Oncegate-Attempt,stripe-signature , Content-Length"}, "X-Forwarded-For": {"1.2.3.4"}, "Stripe-Signature": {"s"},
			"Content-Length": {"3"}, "Oncegate-Attempt": {"9"}, "Oncegate_event": {"x"}, "Upgrade": {"h2c"}, "X-Kept": {"1"},
		}
		if got := strings.Join(forward.Named(h), " "); got != "Close X-Forwarded-For Oncegate-Attempt Stripe-Signature Content-Length" {
			t.Fatalf("named: %s", got)
		}
		out := forward.EndToEnd(h)
		if len(out) != 1 || out.Get("X-Kept") != "1" {
			t.Fatalf("left: %v", out)
		}
		if len(h) != 8 {
			t.Fatal("the request's own headers were changed")
		}
	})
	for name, want := range map[string]bool{
		"Oncegate-Event": true, "oncegate_event": true, "ONCEGATE.EVENT": true, "Oncegate!attempt": true, "Oncegate-": true, "Oncegate~x": true,
		"Oncegate": false, "Oncegatex-Event": false, "Oncegate1": false, "X-Oncegate-Event": false, "Once-Gate-Event": false, "": false,
	} {
		if forward.Reserved(name) != want {
			t.Errorf("Reserved(%q) = %v, want %v", name, !want, want)
		}
	}
}
