package forward

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// http1 is HTTP/1.1, over TCP, TLS or a unix socket.
type http1 struct{}

func newHTTP(u Upstream, o Options) (*client, error) {
	if u.IdleTimeout == 0 {
		u.IdleTimeout = DefaultIdleTimeout
	}
	cl := &client{
		protocol: http1{},
		dialer:   dialer{network: "tcp", address: u.Address, timeout: o.DialTimeout, looking: make(chan struct{}, 1)},
		host:     u.Address,
		pool:     pool{max: o.MaxIdle, timeout: u.IdleTimeout},
		maxHead:  o.MaxHead,
	}
	switch u.Scheme {
	case "unix":
		cl.dialer.network, cl.host = "unix", "localhost"
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

func (http1) appendRequest(b []byte, o *outgoing) ([]byte, error) {
	b, err := o.appendHead(b)
	if err == nil && len(b)+len(o.whole) <= inline {
		b = append(b, o.whole...)
		o.whole = nil
	}
	return b, err
}

func (http1) writeBody(w io.Writer, u *upload) error {
	if u.length >= 0 {
		return u.copy(w, plain)
	}
	if err := u.copy(w, chunk); err != nil {
		return err
	}
	return u.endChunked(w)
}

// maxInterim bounds the 1xx answers that are dropped for one request: a sign of
// life every few seconds from an app that takes its time, not a flood.
const maxInterim = 128

// readAnswer reads up to the answer's head, past 1xx answers.
func (http1) readAnswer(x *exchange, o *outgoing) (*http.Response, error) {
	c := x.conn
	for n := 0; ; n++ {
		resp, err := http.ReadResponse(c.in, o.request)
		if err != nil {
			if c.limit == 0 {
				err = errHeadTooLarge
			}
			return nil, unquoted(err)
		}
		switch status := resp.StatusCode; {
		case status >= 200 || status == http.StatusSwitchingProtocols && o.upgrades():
			c.limit = -1
			resp.Close = resp.Close || mayGoOn(o.method, resp)
			if resp.Body != http.NoBody {
				resp.Body = unquotedBody{resp.Body}
			}
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

// mayGoOn reports whether an answer that has no body may come with one all the
// same: a head that speaks of it where none may be (RFC 9110, section 8.6), and
// whatever answers HEAD. Bytes that come late would be taken for the next answer.
func mayGoOn(method string, resp *http.Response) bool {
	switch {
	case method == http.MethodHead:
		return true
	case resp.StatusCode == http.StatusNoContent:
		length := resp.Header.Get("Content-Length")
		return length != "" && length != "0" || len(resp.TransferEncoding) > 0
	}
	return resp.StatusCode == http.StatusNotModified && len(resp.TransferEncoding) > 0
}

// unquoted returns an error in reading an answer without what the app wrote:
// net/http's errors about heads and trailers quote it.
func unquoted(err error) error {
	var socket net.Error
	if errors.As(err, &socket) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errHeadTooLarge) {
		return err
	}
	return errNotHTTP
}

type unquotedBody struct{ io.ReadCloser }

func (b unquotedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		err = unquoted(err)
	}
	return n, err
}
