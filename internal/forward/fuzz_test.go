package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// canned is a socket on which everything was said already.
type canned struct {
	net.Conn
	said io.Reader
}

func (c canned) Read(p []byte) (int, error)       { return c.said.Read(p) }
func (c canned) Write(p []byte) (int, error)      { return len(p), nil }
func (c canned) Close() error                     { return nil }
func (c canned) SetDeadline(time.Time) error      { return nil }
func (c canned) LocalAddr() net.Addr              { return nil }
func (c canned) RemoteAddr() net.Addr             { return nil }
func (c canned) SetReadDeadline(time.Time) error  { return nil }
func (c canned) SetWriteDeadline(time.Time) error { return nil }

// Whatever an app says, it ends: with a whole answer, or with one of our errors
// that says that something was sent.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nok", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n", "HTTP/1.1 204 x\r\n\r\nmore", "\x16\x03\x01",
	} {
		f.Add(false, []byte(s))
	}
	out := func(kind byte, s string) string {
		return string(appendRecordHead(nil, kind, len(s))) + s
	}
	end := out(typeEnd, "\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, s := range []string{
		out(typeStdout, "Status: 200 OK\r\n\r\nok") + end, out(typeStdout, "A: b\n\n") + out(typeStderr, "x") + out(typeStdout, "") + end,
		out(typeStdout, "Content-Length: 9\n\nok") + end, out(typeEnd, "\x00\x00\x00\x00\x03\x00\x00\x00"), out(typeStdout, "Status: 101\n\n"),
	} {
		f.Add(true, []byte(s))
	}
	f.Fuzz(func(t *testing.T, cgi bool, said []byte) {
		cl := &client{protocol: http1{}, maxHead: 4 << 10, pool: pool{max: 1, timeout: time.Minute}}
		if cgi {
			cl.protocol = &fastCGI{root: "/srv", keep: true, log: slog.New(slog.DiscardHandler)}
		}
		w := &wire{Conn: canned{said: bytes.NewReader(said)}}
		c := newConn(w.Conn, w, w)
		x, err := exchangeOn(cl, c)
		if err == nil {
			_, err = io.Copy(io.Discard, x)
			x.Close()
		}
		var fe *Error
		if err != nil && (!errors.As(err, &fe) || !fe.Sent()) {
			t.Fatalf("got %v (%T)", err, err)
		}
		cl.Close()
	})
}

// exchangeOn is client.start on a connection that is there already.
func exchangeOn(cl *client, c *conn) (*exchange, error) {
	o := &outgoing{method: "POST", target: "/", host: "h", request: &http.Request{Method: "POST"}}
	head, err := cl.protocol.appendRequest(nil, o)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	x := &exchange{client: cl, ctx: ctx, conn: c, unhook: context.AfterFunc(ctx, c.cut)}
	c.limit = cl.maxHead
	if _, err := c.stream.Write(head); err != nil {
		return nil, err
	}
	resp, err := cl.protocol.readAnswer(x, o)
	if err != nil {
		return nil, x.fail(err)
	}
	x.body, x.close = resp.Body, resp.Close
	return x, nil
}
