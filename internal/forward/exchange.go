package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// inline is the most that is written before anything is read. It fits into the
// buffers of a socket, so that the write ends whatever the app does.
const inline = 64 << 10

// An outgoing is one request on its way, whichever face it came in by.
type outgoing struct {
	method, target, host string
	header               http.Header
	remote               string // the peer, host:port; empty: not known

	whole  []byte // the body, where it is in memory
	stream *upload
	length int64 // of the body; -1: not known, so chunked

	spooled int64 // taken of the client's room

	before  func() error
	interim func(code int, h http.Header) error // nil: 1xx answers are dropped
	through bool                                // not a route: Te, Expect and Upgrade are passed on
	request *http.Request                       // what http.ReadResponse is to know
}

// A protocol says how a request and an answer look on the wire.
type protocol interface {
	// appendRequest appends all of the request that goes out with the first
	// write. It takes in o.whole, and makes it nil, where all fits into inline.
	appendRequest(b []byte, o *outgoing) ([]byte, error)
	// writeBody writes a body that did not go out with the first write.
	writeBody(w io.Writer, u *upload) error
	// readAnswer reads the answer's head. The body of what it returns ends with
	// io.EOF only where the answer is complete, and is http.NoBody where none
	// can come and the connection is at rest.
	readAnswer(x *exchange, o *outgoing) (*http.Response, error)
}

// An exchange is one request and its answer on one connection. It is also the
// answer's body.
type exchange struct {
	client *client
	ctx    context.Context
	conn   *conn
	upload *upload     // nil: the request was written before the answer was read
	unhook func() bool // ends the watch on ctx
	wrote  error       // why the request could not be written whole
	body   io.Reader
	close  bool  // the connection ends with this answer
	err    error // set once the body has ended
}

// start writes the request on a kept or a new connection, and reads the head of
// the answer. It returns an error that BeforeFirstByte returned as it is.
func (cl *client) start(ctx context.Context, o *outgoing) (*exchange, *http.Response, error) {
	x, err := cl.write(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	resp, err := cl.protocol.readAnswer(x, o)
	if err != nil {
		return nil, nil, x.fail(err)
	}
	x.body, x.close = resp.Body, resp.Close
	return x, resp, nil
}

// write puts the request together and sends it. The buffer is free again before
// the app has begun to think.
func (cl *client) write(ctx context.Context, o *outgoing) (*exchange, error) {
	buf := heads.Get().(*[]byte)
	defer heads.Put(buf)
	head, err := cl.protocol.appendRequest((*buf)[:0], o)
	if err != nil {
		return nil, invalid(err)
	}
	if cap(head) <= 2*inline {
		*buf = head
	}
	return cl.send(ctx, o, head)
}

// send gets a connection and writes head to it. A kept connection on which not
// even the first byte could be written is replaced, once.
func (cl *client) send(ctx context.Context, o *outgoing, head []byte) (*exchange, error) {
	c := cl.pool.get()
	for {
		if err := ctx.Err(); err != nil {
			if c != nil {
				c.cut()
			}
			return nil, unreached(context.Cause(ctx))
		}
		if c == nil {
			var err error
			if c, err = cl.dialer.dial(ctx); err != nil {
				return nil, unreached(err)
			}
		}
		if o.before != nil {
			if err := o.before(); err != nil {
				cl.pool.put(c) // as good as it was
				return nil, err
			}
			if c.reused && !c.quiet() { // that may have taken a while
				c.cut()
				c = nil
				continue
			}
		}
		x := &exchange{client: cl, ctx: ctx, conn: c, unhook: context.AfterFunc(ctx, c.cut)}
		c.limit = cl.maxHead
		_, x.wrote = c.stream.Write(head)
		if x.wrote == nil {
			x.sendBody(o)
			return x, nil
		}
		if c.wire.sent.Load() {
			// Part of it is out. The app may have answered all the same (413,
			// say, and closed): readAnswer finds out.
			return x, nil
		}
		x.unhook()
		c.cut()
		if !c.reused || ctx.Err() != nil {
			return nil, failure(ctx, false, x.wrote)
		}
		c = nil
	}
}

// sendBody starts writing what doesn't go out with the head.
func (x *exchange) sendBody(o *outgoing) {
	u := o.stream
	if u == nil && len(o.whole) > 0 {
		u = newUpload(memory(o.whole), int64(len(o.whole)))
	}
	if u == nil {
		return
	}
	o.stream = nil // it belongs to the exchange now
	x.upload = u
	x.client.uploads.Go(func() { u.run(x.client.protocol, x.conn) })
}

// Read reads the answer's body. Its end is io.EOF only where the framing says
// that this is the end.
func (x *exchange) Read(p []byte) (int, error) {
	if x.err != nil {
		return 0, x.err
	}
	n, err := x.body.Read(p)
	switch err {
	case nil:
	case io.EOF:
		x.err = io.EOF
		x.finish()
	default:
		x.err = x.fail(err)
	}
	return n, x.err
}

// Close gives the body up. A body that has not ended takes its connection along.
func (x *exchange) Close() error {
	if x.err == nil {
		x.err = errBodyClosed
		x.drop()
	}
	return nil
}

// finish ends an exchange whose answer is complete, and keeps the connection if
// it is at rest: everything written, everything read, nobody cutting it.
func (x *exchange) finish() {
	c := x.conn
	watched := x.unhook()
	whole := x.wrote == nil && (x.upload == nil || x.upload.finished())
	if watched && whole && !x.close && c.in.Buffered() == 0 {
		x.client.pool.put(c)
		return
	}
	x.drop()
}

// drop closes the connection, and tells the upload, if any, to end.
func (x *exchange) drop() {
	x.unhook()
	x.conn.cut()
	if x.upload != nil {
		close(x.upload.quit)
	}
}

// fail drops the exchange and makes its error. What kept the request from being
// written explains more than the silence that followed.
func (x *exchange) fail(err error) *Error {
	x.drop()
	sent := x.conn.wire.sent.Load()
	if x.wrote != nil {
		err = x.wrote
	}
	if u := x.upload; u != nil {
		select {
		case <-u.done:
			if errors.Is(u.err, ErrRequestBody) {
				err = u.err
			}
		default:
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return failure(x.ctx, sent, err)
}

func (o *outgoing) upgrades() bool { return o.through && len(o.header["Upgrade"]) > 0 }
