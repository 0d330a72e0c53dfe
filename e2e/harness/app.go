package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

// An App is a stand-in for the protected app where a test needs to see the
// bytes that oncegate sends, or to answer as no real server would: it reads
// requests off raw connections and notes each of them, line by line.
type App struct {
	// Addr is its host:port, URL the same with http.
	Addr, URL string
	handler   func(*Request) Reply

	mu       sync.Mutex // guards what follows
	requests []*Request
	listener net.Listener
	conns    map[net.Conn]bool
	serving  sync.WaitGroup
}

// A Request is one request as it came off the wire.
type Request struct {
	Method, Target string
	// Lines are the header's lines as sent, without line ends.
	Lines []string
	// Header is made from Lines.
	Header http.Header
	Body   []byte
	// At is when it had been read.
	At time.Time
	// Chunked says how the body's length was told.
	Chunked bool
	// Gone is closed when the other side hangs up before it is answered.
	Gone <-chan struct{}
}

// A Reply is what the app does after it has read a request.
type Reply struct {
	// Status, Header (lines "Name: value") and Body make an answer; zero
	// Status means 200. Content-Length is added.
	Status int
	Header []string
	Body   []byte
	// Raw, when set, is written instead, byte for byte.
	Raw []byte
	// Reset breaks the connection after that with a TCP reset, Close ends it.
	Reset, Close bool
	// CloseAfter, when set, ends the connection if no other request has begun
	// on it by then: as servers do with idle ones.
	CloseAfter time.Duration
	// Upgraded, when set, gets the connection after the answer.
	Upgraded func(*bufio.Reader, net.Conn)
}

// NewApp starts an app on a free port. It ends with the test. The handler is
// called from a goroutine for each connection; it runs after the whole request
// was read and noted.
func NewApp(t testing.TB, port int, handler func(*Request) Reply) *App {
	t.Helper()
	a := &App{Addr: "127.0.0.1:" + strconv.Itoa(port), handler: handler}
	a.URL = "http://" + a.Addr
	a.Start(t)
	t.Cleanup(a.Stop)
	return a
}

// Start listens again after Stop, on the same port.
func (a *App) Start(t testing.TB) {
	t.Helper()
	l := testenv.Listen(t, a.Addr)
	a.mu.Lock()
	a.listener, a.conns = l, make(map[net.Conn]bool)
	a.mu.Unlock()
	a.serving.Go(func() { a.accept(l) })
}

// Stop closes the port and all connections: who connects now is refused.
func (a *App) Stop() {
	a.mu.Lock()
	a.listener.Close()
	for c := range a.conns {
		c.Close()
	}
	a.mu.Unlock()
	a.serving.Wait()
}

// Requests returns what has been read so far.
func (a *App) Requests() []*Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*Request(nil), a.requests...)
}

// Hits counts the requests whose body contains the text.
func (a *App) Hits(text string) (n int) {
	for _, r := range a.Requests() {
		if bytes.Contains(r.Body, []byte(text)) {
			n++
		}
	}
	return n
}

func (a *App) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // Stop has closed it
		}
		a.mu.Lock()
		a.conns[c] = true
		a.mu.Unlock()
		a.serving.Go(func() {
			defer func() {
				a.mu.Lock()
				delete(a.conns, c)
				a.mu.Unlock()
				c.Close()
			}()
			a.serve(c)
		})
	}
}

// serve answers the requests of one connection until one side ends it.
func (a *App) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := readRequest(in)
		if err != nil {
			return
		}
		gone, settle := watch(c, in)
		r.At, r.Gone = time.Now(), gone
		a.mu.Lock()
		a.requests = append(a.requests, r)
		a.mu.Unlock()
		reply := a.handler(r)
		alive := settle()
		if _, err := c.Write(reply.bytes()); err != nil || !alive {
			return
		}
		switch {
		case reply.Upgraded != nil:
			reply.Upgraded(in, c)
			return
		case reply.Reset:
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // so that Close sends a reset
			}
			return
		case reply.Close:
			return
		case reply.CloseAfter > 0:
			_ = c.SetReadDeadline(time.Now().Add(reply.CloseAfter))
			if _, err := in.Peek(1); err != nil {
				return
			}
			_ = c.SetReadDeadline(time.Time{})
		}
	}
}

// watch notices when the other side hangs up. settle ends the watching and
// reports whether the connection still stands.
func watch(c net.Conn, in *bufio.Reader) (gone <-chan struct{}, settle func() bool) {
	left := make(chan struct{})
	ended := make(chan bool, 1)
	go func() {
		_, err := in.Peek(1)
		var timeout net.Error
		alive := err == nil || errors.As(err, &timeout) && timeout.Timeout()
		if !alive {
			close(left)
		}
		ended <- alive
	}()
	return left, func() bool {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
		alive := <-ended
		_ = c.SetReadDeadline(time.Time{})
		return alive
	}
}

func readRequest(in *bufio.Reader) (*Request, error) {
	text := textproto.NewReader(in)
	first, err := text.ReadLine()
	if err != nil {
		return nil, err
	}
	method, rest, _ := strings.Cut(first, " ")
	target, _, _ := strings.Cut(rest, " HTTP/")
	r := &Request{Method: method, Target: target, Header: make(http.Header)}
	for {
		line, err := text.ReadLine()
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		r.Lines = append(r.Lines, line)
		r.Header.Add(name, strings.TrimSpace(value))
	}
	var body io.Reader
	switch {
	case r.Header.Get("Transfer-Encoding") == "chunked":
		r.Chunked = true
		body = httputil.NewChunkedReader(in)
	default:
		length, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64)
		if err != nil {
			length = 0 // none was sent
		}
		body = io.LimitReader(in, length)
	}
	if r.Body, err = io.ReadAll(body); err != nil {
		return nil, err
	}
	if r.Chunked {
		// What follows the last chunk: trailers, and an empty line.
		if _, err := text.ReadMIMEHeader(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r Reply) bytes() []byte {
	if r.Raw != nil {
		return r.Raw
	}
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", r.Status, http.StatusText(r.Status))
	for _, line := range r.Header {
		b.WriteString(line + "\r\n")
	}
	if r.Status >= 200 && r.Status != http.StatusNoContent {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}
