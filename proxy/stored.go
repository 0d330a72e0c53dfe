package proxy

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"oncegate/lock"
)

// keptHeaders are the header names of an answer that are kept for replay,
// besides all that begin with Content-. They describe the answer; what belongs
// to one exchange or one caller (cookies, credentials, dates, request IDs, rate
// limits, and whatever else an app may say) is not kept, so it can't be replayed
// to somebody else.
var keptHeaders = map[string]bool{
	"Accept-Ranges": true,
	"Cache-Control": true,
	"Etag":          true,
	"Expires":       true,
	"Last-Modified": true,
	"Link":          true,
	"Location":      true,
	"Vary":          true,
}

// keep returns an answer as it is stored.
func keep(status int, header http.Header, body []byte, stub bool) *lock.Answer {
	a := &lock.Answer{Status: status, Body: body, Stub: stub}
	for name, values := range header {
		if !keptHeaders[name] && (!strings.HasPrefix(name, "Content-") || name == "Content-Length") {
			continue
		}
		if stub && ofBody(name) {
			continue
		}
		for _, v := range values {
			a.Header = append(a.Header, lock.Line{Name: name, Value: v})
		}
	}
	return a
}

// ofBody reports whether a header speaks of a body that a stub has not got.
func ofBody(name string) bool {
	switch name {
	case "Content-Digest", "Content-Encoding", "Content-Md5", "Content-Range":
		return true
	}
	return false
}

// replay writes a stored answer.
func replay(w http.ResponseWriter, word string, a *lock.Answer) {
	header := w.Header()
	clear(header)
	asIs(header)
	delete(header, "Date") // the current one
	for _, l := range a.Header {
		if a.Stub && ofBody(l.Name) {
			continue
		}
		header[l.Name] = append(header[l.Name], l.Value)
	}
	header.Set(resultHeader, word)
	header.Set("Idempotent-Replayed", "true")
	if a.Stub {
		header.Set("Oncegate-Answer", "stub")
	}
	if bodyAllowed(a.Status) {
		header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	// The sender may be gone: the next delivery gets the same.
	_, _ = w.Write(a.Body)
}

// bodyAllowed reports whether an answer with this status may have a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// relay writes the app's own answer: what was read of its body, then the rest.
// Its error says that the answer broke off, which the sender must be able to
// tell.
func relay(w http.ResponseWriter, method, word string, rep *reply) error {
	h := w.Header()
	clear(h)
	asIs(h)
	for name, values := range rep.header {
		h[name] = values
	}
	h.Set(resultHeader, word)
	if rep.rest == nil && bodyAllowed(rep.status) && method != http.MethodHead {
		h.Set("Content-Length", strconv.Itoa(len(rep.body)))
	}
	w.WriteHeader(rep.status)
	_, err := w.Write(rep.body)
	if rep.rest == nil {
		return nil // all there is was written, or the sender is gone
	}
	if err == nil {
		flush := http.NewResponseController(w)
		_ = flush.Flush() // can't be told apart from the sender's being gone
	}
	return drain(w, rep.rest)
}

// drain copies what is left of the app's answer to its end, also when nobody
// reads it any more: an app whose answer is not taken may stop in the middle of
// its work. Its error is the app's.
func drain(w io.Writer, rest io.Reader) error {
	buf := make([]byte, 32<<10)
	gone := false
	for {
		n, err := rest.Read(buf)
		if n > 0 && !gone {
			_, werr := w.Write(buf[:n])
			gone = werr != nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
