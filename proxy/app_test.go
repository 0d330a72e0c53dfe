package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// An app records what reaches it and answers as it is told.
type app struct {
	*httptest.Server

	mu      sync.Mutex // guards what follows
	hits    []hit
	handler http.HandlerFunc // nil: 200 with a body of its own
}

// A hit is one request as the app saw it.
type hit struct {
	method, target, host string
	header               http.Header
	length               int64
	chunked              bool
	body                 string
}

func newApp(t testing.TB) *app {
	a := &app{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		a.mu.Lock()
		if err == nil {
			a.hits = append(a.hits, hit{r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, len(r.TransferEncoding) > 0, string(body)})
		}
		n, handler := len(a.hits), a.handler
		a.mu.Unlock()
		if handler != nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			handler(w, r)
			return
		}
		fmt.Fprintf(w, "answer %d", n)
	}))
	a.Config.DisableGeneralOptionsHandler = true
	a.Start()
	t.Cleanup(a.Close)
	return a
}

func (a *app) answer(f http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handler = f
}

// say makes the app answer with a status and a body.
func (a *app) say(status int, body string) {
	a.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// hold makes the app keep requests until release is called. Arrived is told of
// each.
func (a *app) hold(t *testing.T) (arrived <-chan *http.Request, release func()) {
	c, open := make(chan *http.Request, 1000), make(chan struct{})
	release = sync.OnceFunc(func() { close(open) })
	t.Cleanup(release)
	a.answer(func(w http.ResponseWriter, r *http.Request) {
		c <- r
		<-open
		io.WriteString(w, "held")
	})
	return c, release
}

func (a *app) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.hits)
}

func (a *app) last(t *testing.T) hit {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hits) == 0 {
		t.Fatal("nothing reached the app")
	}
	return a.hits[len(a.hits)-1]
}

// take returns what reached the app since the last time.
func (a *app) take() []hit {
	a.mu.Lock()
	defer a.mu.Unlock()
	hits := a.hits
	a.hits = nil
	return hits
}

// A rawApp is an app at the level of its sockets.
type rawApp struct {
	url string

	mu       sync.Mutex // guards requests
	requests []string   // first lines of those read whole
}

// A wire is one connection, to an app or of a sender.
type wire struct {
	net.Conn
	in  *bufio.Reader
	app *rawApp
}

// newRawApp serves each connection so.
func newRawApp(t *testing.T, serve func(*wire)) *rawApp {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &rawApp{url: "http://" + l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(&wire{c, bufio.NewReader(c), a})
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return a
}

// request reads a whole request and writes it down.
func (c *wire) request() (*http.Request, bool) {
	req, err := http.ReadRequest(c.in)
	if err != nil {
		return nil, false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, false
	}
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	c.app.requests = append(c.app.requests, req.Method+" "+req.RequestURI)
	return req, true
}

// always answers every request alike.
func always(answer string) func(*wire) {
	return func(c *wire) {
		for {
			if _, more := c.request(); !more {
				return
			}
			c.say(answer)
		}
	}
}

func (c *wire) say(s string) { io.WriteString(c, s) }

func (a *rawApp) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requests)
}

// dial connects a sender that says and hears raw bytes.
func (r *rig) dial() *wire {
	r.t.Helper()
	c, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return &wire{Conn: c, in: bufio.NewReader(c)}
}

// until reads up to and including the given end.
func (c *wire) until(t *testing.T, end string) string {
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

// hear reads one answer.
func (c *wire) hear(t testing.TB) answered {
	t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answered{err: err}
	}
	body, err := io.ReadAll(resp.Body)
	return answered{resp.StatusCode, resp.Header.Get("Oncegate-Result"), resp.Header, string(body), err}
}

// raw sends a request given as lines and a body. A Content-Length is added.
func (r *rig) raw(body string, lines ...string) answered {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	c.say(strings.Join(lines, "\r\n") + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	return c.hear(r.t)
}
