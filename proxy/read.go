package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
)

const (
	// bodyTime bounds how long a sender may take to send a delivery's body.
	bodyTime = 30 * time.Second
	// Room is taken in steps of this size, so that a body of unknown length
	// takes no more than it needs.
	bodyStep = 64 << 10
)

// A body is a delivery's body while it is in hand.
type body struct {
	bytes []byte
	taken int64 // of the hand's bytes
}

// read reads the whole body. With an error it returns what it has read, so
// that the delivery can still be passed on.
func (h *Handler) read(w http.ResponseWriter, req *http.Request, most int64) (b body, err error) {
	if req.ContentLength > most {
		return b, ErrTooLarge
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return b, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	defer func() {
		// Where it can't be set it can't be reset either; the server sets its own
		// for the next request.
		_ = control.SetReadDeadline(time.Time{})
	}()
	if n := req.ContentLength; n >= 0 {
		if !h.hand.grow(n) {
			return b, ErrOverload
		}
		b.taken = n
		b.bytes = make([]byte, n)
		n, err := io.ReadFull(req.Body, b.bytes)
		b.bytes = b.bytes[:n]
		if err != nil && b.taken > 0 {
			return b, ErrIncomplete
		}
		return b, nil
	}
	var buf bytes.Buffer
	for {
		if !h.hand.grow(bodyStep) {
			b.bytes = buf.Bytes()
			return b, ErrOverload
		}
		b.taken += bodyStep
		n, err := io.CopyN(&buf, req.Body, bodyStep)
		b.bytes = buf.Bytes()
		switch {
		case int64(buf.Len()) > most:
			return b, ErrTooLarge
		case err == io.EOF:
			return b, nil
		case err != nil || n < bodyStep:
			return b, ErrIncomplete
		}
	}
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
