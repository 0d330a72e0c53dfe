package proxy

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// A passWorld is a client, a pass and an app at the level of their sockets.
type passWorld struct {
	front  *httptest.Server
	pass   *pass
	errors *lockedBuffer // what net/http's server logged

	mu       sync.Mutex // guards all below
	requests []string   // that the app read whole
	reported []error
}

// An appConn is one connection to the app.
type appConn struct {
	net.Conn
	in    *bufio.Reader
	world *passWorld
}

// startPass puts a pass in front of an app that serves each connection so.
func startPass(t *testing.T, serve func(*appConn)) *passWorld {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	world := &passWorld{errors: new(lockedBuffer)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(&appConn{c, bufio.NewReader(c), world})
			})
		}
	})
	app, err := forward.New(forward.Upstream{Scheme: "http", Address: l.Addr().String(), IdleTimeout: time.Minute}, forward.Options{})
	if err != nil {
		t.Fatal(err)
	}
	world.pass = newPass(app, func(_ *http.Request, err error) {
		world.mu.Lock()
		defer world.mu.Unlock()
		world.reported = append(world.reported, err)
	})
	world.front = httptest.NewUnstartedServer(world.pass)
	world.front.Config.DisableGeneralOptionsHandler = true
	world.front.Config.ErrorLog = log.New(world.errors, "", 0)
	world.front.Start()
	t.Cleanup(func() {
		world.pass.closeTunnels()
		world.front.CloseClientConnections()
		world.front.Close()
		app.Close()
		l.Close()
		wg.Wait()
	})
	return world
}

// request reads a whole request from the client's side and writes it down.
func (c *appConn) request() (string, bool) {
	var seen strings.Builder
	req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(oneByte{c.in}, &seen)))
	if err != nil {
		return "", false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return "", false
	}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.world.requests = append(c.world.requests, seen.String())
	return seen.String(), true
}

func (c *appConn) say(s string) { io.WriteString(c, s) }

// oneByte keeps the reader above it from taking more than its request.
type oneByte struct{ io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

func (w *passWorld) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

func (w *passWorld) reports() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reported)
}

// dial connects a client that says and hears raw bytes.
func (w *passWorld) dial(t *testing.T) *rawClient {
	t.Helper()
	c, err := net.Dial("tcp", w.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return &rawClient{c, bufio.NewReader(c)}
}

type rawClient struct {
	net.Conn
	in *bufio.Reader
}

func (c *rawClient) say(s string) { io.WriteString(c, s) }

// until reads up to and including the given end.
func (c *rawClient) until(t *testing.T, end string) string {
	t.Helper()
	var b []byte
	for !bytes.HasSuffix(b, []byte(end)) {
		x, err := c.in.ReadByte()
		if err != nil {
			t.Fatalf("heard %q, then %v; waiting for %q", b, err, end)
		}
		b = append(b, x)
	}
	return string(b)
}

// answer reads one answer.
func (c *rawClient) answer(t *testing.T, method string) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// A lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// sayAlways answers every request alike.
func sayAlways(answer string) func(*appConn) {
	return func(c *appConn) {
		for {
			if _, more := c.request(); !more {
				return
			}
			c.say(answer)
		}
	}
}
