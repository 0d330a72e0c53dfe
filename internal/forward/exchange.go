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

// maxInterim bounds the 1xx answers that are dropped for one request: a sign of
// life every few seconds from an app that takes its time, not a flood.
const maxInterim = 128

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
	buf := heads.Get().(*[]byte)
	defer heads.Put(buf)
	head, err := o.appendHead((*buf)[:0])
	if err != nil {
		return nil, nil, invalid(err)
	}
	if len(o.whole) > 0 && len(head)+len(o.whole) <= inline {
		head = append(head, o.whole...)
		o.whole = nil
	}
	if cap(head) <= 2*inline {
		*buf = head
	}
	x, err := cl.send(ctx, o, head)
	if err != nil {
		return nil, nil, err
	}
	resp, err := x.readHead(o)
	if err != nil {
		return nil, nil, x.fail(err)
	}
	x.body, x.close = resp.Body, resp.Close
	return x, resp, nil
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
			// say, and closed): readHead finds out.
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
	x.client.uploads.Go(func() { u.run(x.conn) })
}

// readHead reads up to the answer's head, past 1xx answers.
func (x *exchange) readHead(o *outgoing) (*http.Response, error) {
	c := x.conn
	for n := 0; ; n++ {
		resp, err := http.ReadResponse(c.in, o.request)
		if err != nil {
			if c.limit == 0 {
				err = errHeadTooLarge
			}
			return nil, err
		}
		switch status := resp.StatusCode; {
		case status >= 200 || status == http.StatusSwitchingProtocols && o.upgrades():
			c.limit = -1
			return resp, nil
		case status == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case status < 100:
			return nil, errStatus
		case status == http.StatusContinue && x.upload != nil:
			x.upload.admit()
		}
		if o.interim != nil {
			if err := o.interim(resp.StatusCode, resp.Header); err != nil {
				return nil, err
			}
			c.limit = x.client.maxHead
		} else if n == maxInterim {
			return nil, errInterim
		}
	}
}

func (o *outgoing) upgrades() bool { return o.through && len(o.header["Upgrade"]) > 0 }

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
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return failure(x.ctx, sent, err)
}
