package forward_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// A rawApp is an app at the level of the socket: it sees every byte and can do
// what no HTTP server would.
type rawApp struct {
	net.Listener
	serve func(*rawConn)

	mu       sync.Mutex // guards all below
	requests []string   // every whole request, as it came
	conns    int
	open     map[net.Conn]bool
	wg       sync.WaitGroup
}

// A rawConn is one connection to a rawApp.
type rawConn struct {
	net.Conn
	app *rawApp
	in  *bufio.Reader
}

func startRaw(t *testing.T, serve func(*rawConn)) *rawApp {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startRawOn(t, l, serve)
}

func startRawOn(t *testing.T, l net.Listener, serve func(*rawConn)) *rawApp {
	app := &rawApp{Listener: l, serve: serve, open: map[net.Conn]bool{}}
	app.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			app.mu.Lock()
			app.conns++
			app.open[c] = true
			app.mu.Unlock()
			app.wg.Go(func() {
				defer c.Close()
				app.serve(&rawConn{Conn: c, app: app, in: bufio.NewReader(c)})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		app.mu.Lock()
		for c := range app.open {
			c.Close()
		}
		app.mu.Unlock()
		app.wg.Wait()
	})
	return app
}

// request reads one whole request, writes it down, and returns its bytes.
func (c *rawConn) request() (string, bool) {
	var seen strings.Builder
	tee := bufio.NewReader(io.TeeReader(c.in, &seen))
	req, err := http.ReadRequest(tee)
	if err != nil {
		return "", false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return "", false
	}
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	c.app.requests = append(c.app.requests, seen.String())
	return seen.String(), true
}

func (c *rawConn) say(s string) { io.WriteString(c, s) }

func (a *rawApp) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.requests...)
}

func (a *rawApp) connections() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conns
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// always answers every request alike.
func always(answer string) func(*rawConn) {
	return func(c *rawConn) {
		for {
			if _, more := c.request(); !more {
				return
			}
			c.say(answer)
		}
	}
}

func client(t *testing.T, app net.Listener, o forward.Options) forward.App {
	t.Helper()
	u := forward.Upstream{Scheme: "http", Address: app.Addr().String(), IdleTimeout: time.Minute}
	if app.Addr().Network() == "unix" {
		u.Scheme = "unix"
	}
	return clientOf(t, u, o)
}

func clientOf(t *testing.T, u forward.Upstream, o forward.Options) forward.App {
	t.Helper()
	cl, err := forward.New(u, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

func post(body string, header ...string) *forward.Request {
	r := &forward.Request{Method: "POST", Target: "/hook", Host: "shop.example", Header: http.Header{}, Body: []byte(body)}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// read forwards r and reads the whole answer.
func read(t *testing.T, cl forward.Forwarder, r *forward.Request) (*forward.Answer, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := cl.Forward(ctx, r)
	if err != nil {
		return nil, "", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	return a, string(b), err
}

func mustRead(t *testing.T, cl forward.Forwarder, r *forward.Request) (*forward.Answer, string) {
	t.Helper()
	a, body, err := read(t, cl, r)
	if err != nil {
		t.Fatalf("forward: %v", err)
	}
	return a, body
}

// wantError checks an error's kind and whether it says that anything was sent.
func wantError(t *testing.T, err error, kind forward.Kind, sent bool) {
	t.Helper()
	var fe *forward.Error
	if !errors.As(err, &fe) {
		t.Fatalf("got error %v (%T), want a *forward.Error", err, err)
	}
	if fe.Kind != kind || fe.Sent() != sent {
		t.Fatalf("got %s, sent %v (%v); want %s, sent %v", fe.Kind, fe.Sent(), err, kind, sent)
	}
}
