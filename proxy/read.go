package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// A body takes no more room than twice what has come of it, whatever length was
// announced, and this much at first.
const firstRoom = 8 << 10

// read reads the whole body, and makes the delivery of it. With an error it
// keeps what it has read, so that the delivery can still be passed on.
func (p *passage) read() error {
	control := http.NewResponseController(p.w)
	// An error says that this connection has no deadlines; then the server's own
	// hold.
	_ = control.SetReadDeadline(p.arrived.Add(p.h.bodyTime))
	err := p.readBody(p.req.Body, p.req.ContentLength, p.r.MaxBody)
	_ = control.SetReadDeadline(time.Time{})
	p.whole = err == nil
	p.delivery = deliver(p.t.config, p.req, p.body, p.arrived)
	p.doc = keyextract.Parse(p.delivery)
	return err
}

// readBody reads a body of the length given, or of at most `most` bytes where
// the length is not known.
func (p *passage) readBody(from io.Reader, length, most int64) error {
	limit := length
	if length < 0 {
		limit = most + 1
	}
	for int64(len(p.body)) < limit {
		if len(p.body) == cap(p.body) {
			size := min(max(2*int64(cap(p.body)), firstRoom), limit)
			if !p.h.hand.grow(size - int64(cap(p.body))) {
				return ErrOverload
			}
			p.room += size - int64(cap(p.body))
			p.body = append(make([]byte, 0, size), p.body...)
		}
		n, err := from.Read(p.body[len(p.body):cap(p.body)])
		p.body = p.body[:len(p.body)+n]
		if err == io.EOF && (length < 0 || int64(len(p.body)) == length) {
			break
		}
		if err != nil {
			return ErrIncomplete
		}
	}
	if int64(len(p.body)) > most {
		return ErrTooLarge
	}
	return nil
}

// deliver makes the delivery of a request whose body has been read.
func deliver(c *config.Config, req *http.Request, body []byte, arrived time.Time) *delivery.Delivery {
	return &delivery.Delivery{
		Method: req.Method, Target: req.RequestURI, Host: req.Host, Header: req.Header,
		Body: body, Arrived: arrived, Remote: remote(c.TrustedProxies, req),
	}
}

// remote returns the sender's address: the peer's, or, where that is a trusted
// proxy, the last address in X-Forwarded-For that is none.
func remote(trusted []netip.Prefix, req *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil {
		return netip.Addr{} // a unix socket has none
	}
	return peel(trusted, peer.Addr().Unmap(), req.Header["X-Forwarded-For"])
}
