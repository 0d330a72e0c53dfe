package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oncegate/internal/forward"
)

// A pass carries everything that is not a route between client and app, as if
// nothing stood between them: target, Host and header lines as they came, bodies
// streamed both ways with the framing they came in, trailers, 1xx answers,
// WebSockets. httputil.ReverseProxy is the engine; what it would change by
// itself is put back here, and its transport is package forward's, which sends a
// request once and writes the raw target.
//
// Taken away are hop-by-hop headers, oncegate's own header names (which only
// oncegate may say), and every upgrade but WebSocket's: on an h2c connection a
// client could walk round all routes.
//
// net/http answers a request itself where it can't parse the target ("/%zz":
// 400), and "OPTIONS *" unless http.Server.DisableGeneralOptionsHandler is set.
// Of an absolute-form target it takes the host, as RFC 9112 section 3.2.2 says.
type pass struct {
	proxy  *httputil.ReverseProxy
	report func(*http.Request, error)

	tunnels context.Context // ends all upgraded connections
	end     context.CancelFunc
}

// newPass makes the way to an app. Report, if not nil, is told of every exchange
// with the app that failed and whose client was still there; at most once each.
func newPass(app http.RoundTripper, report func(*http.Request, error)) *pass {
	if report == nil {
		report = func(*http.Request, error) {}
	}
	p := &pass{report: report}
	p.tunnels, p.end = context.WithCancel(context.Background())
	p.proxy = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      app,
		BufferPool:     new(copyBuffers),
		FlushInterval:  20 * time.Millisecond, // of answers with a length; others are flushed at once
		ModifyResponse: p.modify,
		ErrorHandler:   p.fail,
		ErrorLog:       log.New(io.Discard, "", 0), // report says it
	}
	return p
}

// closeTunnels ends upgraded connections, which no http.Server waits for or
// closes. To be called when the time to drain is over.
func (p *pass) closeTunnels() { p.end() }

// An inbound is what the hooks of one exchange need of the client's side.
type inbound struct {
	w http.ResponseWriter
	r *http.Request
	// ended says that the request's body was read to its end.
	ended atomic.Bool
}

// close ends the client's connection with this answer, if there is more of the
// request to come. A server in full duplex that finds the rest after the answer
// would take it for a read of the next request, and panic.
func (in *inbound) close() {
	if !in.ended.Load() {
		in.w.Header().Set("Connection", "close")
	}
}

// closes reports whether close was called for an answer that the client can see
// the end of: one that ends with the connection must end it.
func (in *inbound) closes() bool {
	h := in.w.Header()
	return !in.ended.Load() && h.Get("Connection") == "close" && h.Get("Content-Length") != ""
}

type inboundKey struct{}

func (p *pass) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !passable(r) {
		refusePass(w, ErrTarget)
		return
	}
	if r.ContentLength != 0 {
		// The app may answer while the body is still coming. An error means
		// that this connection can't; then the server's own way holds.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	asIs(w.Header())
	in := &inbound{w: w, r: r}
	in.ended.Store(r.ContentLength == 0)
	ctx := context.WithValue(r.Context(), inboundKey{}, in)
	if websocket(r.Header) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.tunnels, cancel)()
	}
	r = r.WithContext(ctx)
	var rest *sharedBody
	if r.ContentLength != 0 {
		rest = &sharedBody{ReadCloser: r.Body}
		r.Body = rest
	}
	p.proxy.ServeHTTP(w, r)
	if in.closes() {
		linger(w, rest)
	}
}

// passable reports whether a target has one of the forms that a server is asked
// with (RFC 9112, section 3.2): origin, absolute, asterisk. Others, CONNECT's
// among them, could mean something to an app that they don't mean here.
func passable(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return false
	}
	t := r.RequestURI
	return strings.HasPrefix(t, "/") || t == "*" && r.Method == http.MethodOptions ||
		foldPrefix(t, "http://") || foldPrefix(t, "https://")
}

func foldPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// websocket reports whether a request asks for an upgrade to WebSocket and
// nothing else.
func websocket(h http.Header) bool {
	upgrade := h["Upgrade"]
	return len(upgrade) == 1 && strings.EqualFold(textproto.TrimString(upgrade[0]), "websocket")
}

// rewrite makes the request as it came out of what ReverseProxy made of it.
func rewrite(pr *httputil.ProxyRequest) {
	out, in := pr.Out, pr.In
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := in.Header[name]; ok {
			out.Header[name] = values
		}
	}
	for _, name := range forward.Named(in.Header) {
		if name != "Upgrade" && name != "Connection" {
			delete(out.Header, name)
		}
	}
	forward.StripReserved(out.Header)
	out.Header.Del("Http2-Settings")
	if !websocket(in.Header) {
		out.Header.Del("Connection")
		out.Header.Del("Upgrade")
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // none came, none goes
	}
	out.Host = in.Host
	if out.Body != nil {
		forward.StripReserved(in.Trailer) // as announced
		out.Trailer = in.Trailer
		out.Body = &inboundBody{out.Body, in}
	}
}

// An inboundBody is a request's body that, once read, knows its trailers, those
// that were not announced too.
type inboundBody struct {
	io.ReadCloser
	in *http.Request
}

func (b *inboundBody) Trailer() http.Header {
	forward.StripReserved(b.in.Trailer) // as they came
	return b.in.Trailer
}

func (b *inboundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if in, ok := b.in.Context().Value(inboundKey{}).(*inbound); ok && err == io.EOF {
		in.ended.Store(true)
	}
	return n, err
}

// asIs keeps net/http's server from adding what the app did not say.
func asIs(h http.Header) {
	h["Date"] = nil
	h["Content-Type"] = nil
}

func (p *pass) modify(resp *http.Response) error {
	in, ok := resp.Request.Context().Value(inboundKey{}).(*inbound)
	if !ok || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	asIs(in.w.Header()) // a 1xx answer may have cleared it
	in.close()
	resp.Body = &outboundBody{resp.Body, func(err error) {
		row := rowOf(err)
		note(in.w, &row)
		p.tell(in.r, err)
	}}
	return nil
}

// An outboundBody is an answer's body that reports its own breaking.
// ReverseProxy then aborts the client's connection: a partial answer must not
// look complete.
type outboundBody struct {
	io.ReadCloser
	broken func(error)
}

func (b *outboundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.broken(err)
	}
	return n, err
}

// fail answers a request that got no answer from the app.
func (p *pass) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known *forward.Error
	if !errors.As(err, &known) {
		// ReverseProxy's own: the app may have seen the request.
		err = &forward.Error{Kind: forward.Broken, Err: err}
	}
	clear(w.Header())
	if in, ok := r.Context().Value(inboundKey{}).(*inbound); ok {
		in.close()
		r = in.r
	}
	p.tell(r, err)
	refusePass(w, err)
}

func (p *pass) tell(r *http.Request, err error) {
	if r.Context().Err() == nil {
		p.report(r, err)
	}
}

// refusePass answers what can't be passed on, by the table.
func refusePass(w http.ResponseWriter, err error) {
	row := rowOf(err)
	note(w, &row)
	row.write(w, row.status, retryAfter, false)
}

// note lets the writer know why its answer is what it is.
func note(w http.ResponseWriter, row *row) {
	if w, ok := w.(*noted); ok {
		w.failed(row)
	}
}

// copyBuffers is what ReverseProxy copies answers through.
type copyBuffers struct{ pool sync.Pool }

func (b *copyBuffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *copyBuffers) Put(p []byte) { b.pool.Put(&p) }
