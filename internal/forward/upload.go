package forward

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// An upload is the body of a request that is written while the answer may
// already be coming: one that is streamed, or one too large for the socket's
// buffers, where an app that answers before it has read everything would
// otherwise wait for us, and we for it.
type upload struct {
	body    io.ReadCloser
	length  int64 // -1: chunked
	trailer func() http.Header
	names   []string // of the trailers, as announced

	gate chan struct{} // gets a value when the app wants the body; nil: it wants it at once
	quit chan struct{} // closed when nobody waits for the body any more
	done chan struct{} // closed when the goroutine is over
	err  error         // to be read after done
}

func newUpload(body io.ReadCloser, length int64) *upload {
	return &upload{body: body, length: length, quit: make(chan struct{}), done: make(chan struct{})}
}

// announce takes down the names of the trailers that may be announced.
func (u *upload) announce(h http.Header) {
	for name := range h {
		if httpguts.ValidTrailerHeader(name) {
			u.names = append(u.names, name)
		}
	}
	slices.Sort(u.names)
}

// admit lets a body go that waited for the app's 100.
func (u *upload) admit() {
	select {
	case u.gate <- struct{}{}:
	default: // nobody waits, or it was said before
	}
}

// finishTime is how long an answer that is complete waits for its request to be
// seen as written: an app can be quicker than the goroutine that gave it the last
// byte is to say so.
const finishTime = 20 * time.Millisecond

// finished reports whether the whole body was written.
func (u *upload) finished() bool {
	select {
	case <-u.done:
		return u.err == nil
	default:
	}
	timer := time.NewTimer(finishTime)
	defer timer.Stop()
	select {
	case <-u.done:
		return u.err == nil
	case <-timer.C:
		return false
	}
}

// run writes the body to c. If the body can't be read, it closes the connection:
// the app must see that the request is incomplete, and who waits for an answer
// must wake, and find the reason.
func (u *upload) run(pr protocol, c *conn) {
	u.err = errBodyUnwanted
	if u.gate == nil || u.wanted() {
		u.err = pr.writeBody(c.stream, u)
	}
	u.body.Close()
	close(u.done)
	if errors.Is(u.err, ErrRequestBody) {
		c.cut()
	}
}

// wanted waits for the app's word, or long enough.
func (u *upload) wanted() bool {
	timer := time.NewTimer(expectTime)
	defer timer.Stop()
	select {
	case <-u.gate:
		return true
	case <-timer.C:
		return true
	case <-u.quit:
		return false
	}
}

// expectTime is how long a body with Expect: 100-continue waits for the app's
// word, which an app need not give.
const expectTime = time.Second

var errBodyUnwanted = errors.New("the app answered without wanting the body")

// What a copied piece of a body may have around it.
const (
	front = 16
	back  = 2
)

// copy writes the body to w piece by piece, each with one write. frame is given
// the buffer whose n bytes from front on hold the piece, and returns the part of
// that buffer to write.
func (u *upload) copy(w io.Writer, frame func(buf []byte, n int) []byte) error {
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := *pooled
	left := u.length
	for left != 0 {
		p := buf[front : len(buf)-back]
		if left > 0 && int64(len(p)) > left {
			p = p[:left]
		}
		n, err := u.body.Read(p)
		if n > 0 {
			if _, err := w.Write(frame(buf, n)); err != nil {
				return err
			}
		}
		if left > 0 {
			left -= int64(n)
		}
		switch {
		case err == nil:
		case err != io.EOF:
			return fmt.Errorf("%w: %w", ErrRequestBody, err)
		case left > 0:
			return fmt.Errorf("%w: %w", ErrRequestBody, io.ErrUnexpectedEOF)
		default:
			return nil
		}
	}
	// The source has not said yet that this is its end.
	if n, err := u.body.Read(buf[:1]); n > 0 || err != nil && err != io.EOF {
		return fmt.Errorf("%w: it goes on beyond its length", ErrRequestBody)
	}
	return nil
}

// plain is the frame of a piece that needs none.
func plain(buf []byte, n int) []byte { return buf[front : front+n] }

// chunk is the frame of a piece in chunked coding.
func chunk(buf []byte, n int) []byte {
	var size [front]byte
	head := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	start := front - len(head)
	copy(buf[start:], head)
	copy(buf[front+n:], "\r\n")
	return buf[start : front+n+back]
}

// endChunked writes the last chunk, and the trailers as they are known now, but
// for what must not be one (RFC 9110, section 6.5.1).
func (u *upload) endChunked(w io.Writer) error {
	end := []byte("0\r\n")
	if u.trailer != nil {
		for name, values := range u.trailer() {
			for _, value := range values {
				if !httpguts.ValidTrailerHeader(name) || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
					continue
				}
				end = append(end, name+": "+value+"\r\n"...)
			}
		}
	}
	_, err := w.Write(append(end, "\r\n"...))
	return err
}

// buffers is what bodies are copied through.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}
