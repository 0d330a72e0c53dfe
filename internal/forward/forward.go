// Package forward brings requests to the app, and the app's answers back.
//
// # Exactly one send
//
// A claim says who may run an event; this package sees to it that "run" means
// one request on the wire. Go's http.Transport sends some requests again when a
// reused connection breaks: those with a safe method, and those with an
// Idempotency-Key header whose body can be rewound or is empty. A webhook is
// just such a request, and an app that read it, took the money and died would
// take the money twice. Here nothing is ever sent again: once a byte of a
// request has been written to a connection, that request is over when the
// connection is. What may be replaced, once, is a kept connection that turns out
// closed before the first byte.
//
// # Two faces of one client
//
// [Forwarder] is the seam for routes: a request with its whole body in memory,
// an answer with its head read and its body streamed, and errors that say
// whether anything was sent. [App] adds http.RoundTripper for all other traffic,
// streamed both ways. Both write the request as it came: the target and the Host
// byte for byte, no header of our own, exact framing.
//
// # Errors
//
// Every error of Forward, and of reading an answer's body, is an [*Error], but
// for one that BeforeFirstByte returned, which comes back as it is. The question
// that decides whether a claim may be given back is [Error.Sent].
package forward

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// A Forwarder sends a request to the app exactly once.
//
// Forward returns as soon as the head of the answer has been read. The context
// governs the whole exchange, the reading of the answer's body included: when it
// ends, the connection is closed. The caller must read the body to its end or
// close it. A Forwarder may be used by many goroutines; an answer's body by one.
// Nobody retries: neither the Forwarder nor, without a decision about the
// claim, its caller.
type Forwarder interface {
	Forward(ctx context.Context, r *Request) (*Answer, error)
}

// A Request is what is sent to the app. The Forwarder only reads it, and keeps
// nothing of it after the answer's body has ended.
type Request struct {
	Method string
	// Target is written on the request line byte for byte.
	Target string
	// Host is the value of the Host header, byte for byte. Empty, as HTTP/1.0
	// allows it: the upstream's own, without which nginx and others refuse
	// HTTP/1.1.
	Host string
	// Header holds the lines to send. Host, the framing (Content-Length,
	// Transfer-Encoding, Trailer), hop-by-hop headers and Expect are not taken
	// from it.
	Header http.Header
	// Body is the whole body. Its length is said exactly; a body is never sent
	// chunked.
	Body []byte
	// Remote is the peer's address as host:port, for FastCGI's REMOTE_ADDR. Over
	// HTTP nobody is told.
	Remote string
	// BeforeFirstByte, if set, is called when a connection is there and the
	// first byte is about to be written: the last moment to find out that the
	// lease is over. An error ends the exchange with nothing sent, and Forward
	// returns that error itself. It is called again if the connection had to be
	// replaced.
	BeforeFirstByte func() error
}

// An Answer is what the app said.
type Answer struct {
	Status int
	// Header holds the answer's lines without hop-by-hop headers. It belongs to
	// the caller.
	Header http.Header
	// Length is the body's length as announced, or -1 where it was not.
	Length int64
	// Body is never nil. It ends with io.EOF only if the answer is complete by
	// its own framing; otherwise with an *Error. Trailers are dropped.
	Body io.ReadCloser
}

// An App is an upstream with both its faces.
type App interface {
	Forwarder
	// RoundTrip streams a request that is not a delivery. It forwards 1xx
	// answers to the request's httptrace, carries trailers both ways, and
	// returns a connection as the body of a 101. It takes the target from
	// Request.RequestURI where that is set.
	http.RoundTripper
	// Close closes the connections that are kept and waits for uploads that
	// are still under way; those end when their requests' contexts or bodies
	// do.
	Close() error
}

// An Upstream says where the app is.
type Upstream struct {
	// Scheme is http, https, unix (HTTP over a unix socket) or fcgi.
	Scheme string
	// Address is host:port, or a socket's path. An fcgi address is a socket
	// where it begins with a slash.
	Address string
	// Host is the name that the app's certificate must carry. Empty: the host
	// of Address. The Host header is always the sender's.
	Host string
	// Root is the document root of an fcgi upstream.
	Root string
	// IdleTimeout bounds how long an unused connection is kept. Zero:
	// DefaultIdleTimeout for HTTP, none kept for fcgi.
	IdleTimeout time.Duration
}

// DefaultIdleTimeout is below the keep-alive times of the servers that apps are
// likely to stand behind (Apache and Node.js 5 s, nginx 75 s), so that it is
// this side that closes an idle connection. The other way round, a request can
// meet the app's close on the wire, and then nobody knows whether it ran.
const DefaultIdleTimeout = 4 * time.Second

// Options holds what an upstream needs besides its address. The zero value is
// ready to use.
type Options struct {
	// DialTimeout bounds connecting, TLS included. Zero: 5 s.
	DialTimeout time.Duration
	// MaxIdle bounds the connections that are kept unused. Zero: 256.
	MaxIdle int
	// MaxHead bounds the head of an answer, in bytes; those of 1xx answers
	// count in. Zero: 256 KiB.
	MaxHead int
	// MaxSpool bounds, in bytes, a body that is read whole before any of it goes to
	// an fcgi upstream. PHP-FPM must be told the length: larger ones of unknown
	// length end with ErrLengthRequired. And it runs a request whose body breaks
	// off: larger ones of known length are streamed all the same. Zero: 1 MiB.
	MaxSpool int64
	// Room, if set, bounds all such bodies together. Without room for more of one,
	// it is streamed if its length is known, and else ends with ErrNoRoom.
	Room Room
	// TLS, if set, is used for https; its ServerName is set here.
	TLS *tls.Config
	// Log receives what a FastCGI app writes to its error stream. Nil: dropped.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.DialTimeout == 0 {
		o.DialTimeout = 5 * time.Second
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = 256
	}
	if o.MaxHead == 0 {
		o.MaxHead = 256 << 10
	}
	if o.MaxSpool == 0 {
		o.MaxSpool = 1 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// New returns the upstream's client. It connects to nothing yet: an app that is
// not there is an error of each request, not of the start.
func New(u Upstream, o Options) (App, error) {
	o = o.withDefaults()
	switch u.Scheme {
	case "http", "https", "unix":
		return newHTTP(u, o)
	case "fcgi":
		return newFastCGI(u, o)
	}
	return nil, fmt.Errorf("upstream scheme %q: want http, https, unix or fcgi", u.Scheme)
}
