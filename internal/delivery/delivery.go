// Package delivery holds the one value that travels from the edge to the
// store's door: a delivery as it arrived.
//
// Everything between verification and settlement sees a delivery as this plain
// value, never as an *http.Request, so that another front (a queue, an inbox, a
// faster listener) can stand before the same steps.
package delivery

import (
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// A Delivery is one HTTP request, or one queue message, that carries an event
// or a batch of events. It is not changed once it is made; its slices and maps
// belong to it and are only read.
type Delivery struct {
	Method string
	// Target is the raw request target as it stood on the request line:
	// nothing decoded, nothing merged, the query included.
	Target string
	// Host is the Host header's value, as sent.
	Host string
	// Header holds the header lines as received; values of one name keep
	// their order. Names are in canonical MIME form.
	Header http.Header
	// Body is the whole body, bytes as sent (content coding not undone).
	Body []byte
	// Arrived is when the request's head had been read. Signature tolerances
	// are judged against it, however long the delivery waits afterwards.
	Arrived time.Time
	// Remote is the sender's address after trusted proxies were peeled off.
	// It is the zero Addr where none is known.
	Remote netip.Addr
}

// RawQuery returns the target's query as sent, without the question mark.
func (d *Delivery) RawQuery() string {
	_, query, _ := strings.Cut(d.Target, "?")
	return query
}

// RawPath returns the target without its query, as sent.
func (d *Delivery) RawPath() string {
	path, _, _ := strings.Cut(d.Target, "?")
	return path
}
