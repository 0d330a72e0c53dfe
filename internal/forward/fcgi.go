package forward

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/textproto"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// fastCGI speaks FastCGI 1.0 to PHP-FPM, as nginx does: one request at a time on
// a connection, always for the front controller.
//
// Connections are kept only where Upstream.IdleTimeout says so. A worker of
// PHP-FPM serves the connection it has accepted until that is closed; one that
// is kept idle is a worker that nobody else can have, and a request that waits
// in the backlog is overtaken by all that come on kept connections. A new
// connection over a unix socket costs some 20 µs.
type fastCGI struct {
	root string
	keep bool
	log  *slog.Logger
}

func newFastCGI(u Upstream, o Options) (*client, error) {
	if !filepath.IsAbs(u.Root) {
		return nil, fmt.Errorf("fcgi upstream: root %q is no absolute path; want the folder that holds index.php", u.Root)
	}
	cl := &client{
		protocol: &fastCGI{root: path.Clean(u.Root), keep: u.IdleTimeout > 0, log: o.Log},
		dialer:   dialer{network: "tcp", address: u.Address, timeout: o.DialTimeout, looking: make(chan struct{}, 1)},
		pool:     pool{timeout: u.IdleTimeout},
		maxHead:  o.MaxHead,
		spool:    o.MaxSpool,
		room:     o.Room,
	}
	if u.IdleTimeout > 0 {
		cl.pool.max = o.MaxIdle
	}
	if strings.HasPrefix(u.Address, "/") {
		cl.dialer.network = "unix"
	}
	return cl, nil
}

func (f *fastCGI) appendRequest(b []byte, o *outgoing) ([]byte, error) {
	b = appendBegin(b, f.keep)
	b, err := f.appendParams(b, o)
	if err != nil {
		return b, err
	}
	if o.stream == nil && len(b)+len(o.whole)+3*recordHead <= inline && len(o.whole) <= maxRecord {
		if len(o.whole) > 0 {
			b = append(appendRecordHead(b, typeStdin, len(o.whole)), o.whole...)
			o.whole = nil
		}
		b = appendRecordHead(b, typeStdin, 0)
	}
	return b, nil
}

func (f *fastCGI) writeBody(w io.Writer, u *upload) error {
	if err := u.copy(w, stdin); err != nil {
		return err
	}
	_, err := w.Write(appendRecordHead(nil, typeStdin, 0))
	return err
}

// stdin is the frame of a piece of a body.
func stdin(buf []byte, n int) []byte {
	appendRecordHead(buf[front-recordHead:front-recordHead], typeStdin, n)
	return buf[front-recordHead : front+n]
}

// readAnswer reads the head of a CGI answer (RFC 3875, section 6).
func (f *fastCGI) readAnswer(x *exchange, o *outgoing) (*http.Response, error) {
	records := &records{c: x.conn, log: f.log}
	out := bufio.NewReaderSize(records, 4<<10)
	h, err := textproto.NewReader(out).ReadMIMEHeader()
	if err != nil {
		if x.conn.limit == 0 {
			err = errHeadTooLarge
		}
		return nil, err
	}
	resp := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header(h), Request: o.request, Close: !f.keep,
	}
	if resp.StatusCode, err = cgiStatus(resp.Header); err != nil {
		return nil, err
	}
	resp.Status = fmt.Sprintf("%03d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.ContentLength, err = cgiLength(resp.Header); err != nil {
		return nil, err
	}
	x.conn.limit = -1
	body := &cgiBody{out: out, left: resp.ContentLength}
	if o.method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		body.left, body.mute = 0, true
	}
	resp.Body = io.NopCloser(body)
	return resp, nil
}

// cgiStatus takes the status out of a CGI head.
func cgiStatus(h http.Header) (int, error) {
	line := h.Get("Status")
	h.Del("Status")
	if line == "" {
		if h.Get("Location") != "" {
			return http.StatusFound, nil
		}
		return http.StatusOK, nil
	}
	digits, _, _ := strings.Cut(line, " ")
	status, err := strconv.Atoi(digits)
	switch {
	case err != nil || len(digits) != 3 || status < 100:
		return 0, errStatus
	case status == http.StatusSwitchingProtocols:
		return 0, errSwitched
	case status < 200:
		return 0, errStatus
	}
	return status, nil
}

// cgiLength returns the announced length of a body, or -1.
func cgiLength(h http.Header) (int64, error) {
	values := h["Content-Length"]
	if len(values) == 0 {
		return -1, nil
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil || len(values) > 1 {
		return 0, errLength
	}
	return int64(n), nil
}

var errLength = errors.New("a Content-Length that is no length")

// A cgiBody is the body of an answer. It ends where the app says that the
// request has ended, and must by then have been as long as was announced. What
// goes beyond that is dropped, as nginx does it: the announced answer is whole.
type cgiBody struct {
	out  io.Reader
	left int64 // of the announced length; -1: none was announced
	mute bool  // what comes belongs to no body: HEAD, 204, 304, or too long
}

func (b *cgiBody) Read(p []byte) (int, error) {
	n, err := b.out.Read(p)
	for b.mute && err == nil {
		n, err = b.out.Read(p)
	}
	if b.mute {
		return 0, err
	}
	if b.left < 0 {
		return n, err
	}
	if int64(n) > b.left {
		n, b.mute = int(b.left), true
	}
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
