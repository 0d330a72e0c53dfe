package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
)

// A client speaks HTTP/1.1 to one upstream.
type client struct {
	dialer  dialer
	pool    pool
	maxHead int
	uploads sync.WaitGroup
}

func newHTTP(u Upstream, o Options) (*client, error) {
	cl := &client{
		dialer:  dialer{network: "tcp", address: u.Address, timeout: o.DialTimeout},
		pool:    pool{max: o.MaxIdle, timeout: u.IdleTimeout},
		maxHead: o.MaxHead,
	}
	switch u.Scheme {
	case "unix":
		cl.dialer.network = "unix"
	case "https":
		host := u.Host
		if host == "" {
			var err error
			if host, _, err = net.SplitHostPort(u.Address); err != nil {
				return nil, fmt.Errorf("upstream address: %w", err)
			}
		}
		cl.dialer.tls = &tls.Config{}
		if o.TLS != nil {
			cl.dialer.tls = o.TLS.Clone()
		}
		cl.dialer.tls.ServerName = host
		cl.dialer.tls.NextProtos = []string{"http/1.1"}
		if cl.dialer.tls.ClientSessionCache == nil {
			cl.dialer.tls.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		}
	}
	return cl, nil
}

// Close implements App.
func (cl *client) Close() error {
	cl.pool.close()
	cl.uploads.Wait()
	return nil
}

// Forward implements Forwarder.
func (cl *client) Forward(ctx context.Context, r *Request) (*Answer, error) {
	x, resp, err := cl.start(ctx, &outgoing{
		method: r.Method, target: r.Target, host: r.Host, header: r.Header,
		whole: r.Body, length: int64(len(r.Body)),
		before:  r.BeforeFirstByte,
		request: &http.Request{Method: r.Method},
	})
	if err != nil {
		return nil, err
	}
	if resp.Body == http.NoBody {
		x.err = io.EOF
		x.finish()
	}
	StripHop(resp.Header)
	return &Answer{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, Body: x}, nil
}

// A trailing is a request body that knows its trailers once it has been read.
type trailing interface{ Trailer() http.Header }

// RoundTrip implements http.RoundTripper for App.
func (cl *client) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	o := &outgoing{
		method: req.Method, target: req.RequestURI, host: req.Host, header: req.Header,
		length: req.ContentLength, through: true, request: req,
	}
	if o.target == "" {
		o.target = req.URL.RequestURI()
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.Got1xxResponse != nil {
		o.interim = func(code int, h http.Header) error {
			return trace.Got1xxResponse(code, textproto.MIMEHeader(h))
		}
	}
	o.takeBody(req)
	x, resp, err := cl.start(ctx, o)
	if o.stream != nil { // it was never begun
		o.stream.body.Close()
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &tunnel{x}
		return resp, nil
	}
	if resp.Body == http.NoBody {
		x.err = io.EOF
		x.finish()
	}
	resp.Body = x
	return resp, nil
}

// takeBody prepares the streaming of req's body, trailers and all.
func (o *outgoing) takeBody(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		o.length = 0
		return
	}
	if o.length == 0 {
		o.length = -1 // a body is there, and nobody knows how long
	}
	u := newUpload(req.Body, o.length)
	if o.length < 0 {
		u.announce(req.Trailer)
		u.trailer = func() http.Header { return req.Trailer }
		if t, ok := req.Body.(trailing); ok {
			u.trailer = t.Trailer
		}
	}
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		u.gate = make(chan struct{}, 1)
	}
	o.stream = u
}

// memory is a body in memory as an upload wants it.
func memory(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// heads holds the buffers in which requests are put together.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}
