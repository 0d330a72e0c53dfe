package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// A wire is the socket under a connection. It knows whether anything was
// written since the exchange began, which is what Error.Sent rests on; under
// TLS, a library above it could not say.
type wire struct {
	net.Conn
	sent atomic.Bool
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if n > 0 {
		w.sent.Store(true)
	}
	return n, err
}

// A conn is one connection to the app. One exchange owns it at a time.
type conn struct {
	wire   *wire
	stream net.Conn        // the wire, or TLS over it
	raw    syscall.RawConn // for looking at a kept connection; nil: it can't be looked at
	in     *bufio.Reader
	limit  int // what may still be read, in bytes; negative: no limit
	reused bool
	idle   time.Time // since when it is unused
}

func newConn(socket, stream net.Conn, w *wire) *conn {
	c := &conn{wire: w, stream: stream, limit: -1}
	if s, ok := socket.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	c.in = bufio.NewReaderSize(c, 4<<10)
	return c
}

// Read reads from the app, within the limit that holds for the head of an
// answer.
func (c *conn) Read(p []byte) (int, error) {
	if c.limit < 0 {
		return c.stream.Read(p)
	}
	if c.limit == 0 {
		return 0, errHeadTooLarge
	}
	if len(p) > c.limit {
		p = p[:c.limit]
	}
	n, err := c.stream.Read(p)
	c.limit -= n
	return n, err
}

// cut closes the socket under the stream: at once, without TLS's goodbye, and
// from any goroutine. Whoever reads or writes gets an error.
func (c *conn) cut() { c.wire.Conn.Close() }

// A dialer makes connections to one upstream.
type dialer struct {
	network, address string
	timeout          time.Duration
	tls              *tls.Config   // nil: none
	looking          chan struct{} // holds who looks for a place in a full queue; room for one
}

func (d *dialer) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	socket, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: socket}
	if d.tls == nil {
		return newConn(socket, w, w), nil
	}
	stream := tls.Client(w, d.tls)
	if err := stream.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, err
	}
	w.sent.Store(false) // of the request, nothing was
	return newConn(socket, stream, w), nil
}

// fullTime is between two looks at a socket whose queue is full.
const fullTime = 5 * time.Millisecond

// connect waits for a place in the app's queue, as TCP does it: a Unix socket
// whose queue is full refuses at once (EAGAIN), which is what a burst makes of
// PHP-FPM's. One at a time looks again, and the rest wait for their turn: a
// thousand that look would take the processor from the app.
func (d *dialer) connect(ctx context.Context) (net.Conn, error) {
	var nd net.Dialer
	socket, full := nd.DialContext(ctx, d.network, d.address)
	if !errors.Is(full, syscall.EAGAIN) {
		return socket, full
	}
	select {
	case d.looking <- struct{}{}:
		defer func() { <-d.looking }()
	case <-ctx.Done():
		return nil, full
	}
	pause := time.NewTicker(fullTime)
	defer pause.Stop()
	for {
		socket, err := nd.DialContext(ctx, d.network, d.address)
		if !errors.Is(err, syscall.EAGAIN) {
			return socket, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, full
		}
	}
}
