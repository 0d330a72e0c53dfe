package capture

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"

	"oncegate/internal/delivery"
)

// readRaw reads a request as it stands on the wire. Line ends of a file that an
// editor wrote are put right in the head; the body is taken as it is.
func readRaw(text []byte) (Request, error) {
	head, body := cutHead(text)
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(slices.Concat(head, []byte("\r\n\r\n")))))
	if err != nil {
		return Request{}, wrong("it is no raw HTTP request (%v), no curl command and no HAR", err)
	}
	r := Request{Delivery: &delivery.Delivery{
		Method: request.Method, Target: request.RequestURI, Host: request.Host,
		Header: request.Header, Body: body,
	}}
	if slices.Contains(request.TransferEncoding, "chunked") {
		return unchunk(r), nil
	}
	return fit(r, request.ContentLength, request.Header.Get("Content-Length") != "")
}

// cutHead cuts a request at its first empty line.
func cutHead(text []byte) (head, body []byte) {
	end, skip := len(text), 0
	for _, blank := range []string{"\r\n\r\n", "\n\n", "\n\r\n"} {
		if i := bytes.Index(text, []byte(blank)); i >= 0 && i < end {
			end, skip = i, len(blank)
		}
	}
	return text[:end], text[end+skip:]
}

// unchunk undoes the framing of a body whose chunks were kept.
func unchunk(r Request) Request {
	plain, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(r.Delivery.Body)))
	if err == nil {
		r.Delivery.Body = plain
	}
	return r
}

// fit holds a body against its announced length: one newline more is an
// editor's.
func fit(r Request, length int64, announced bool) (Request, error) {
	body := r.Delivery.Body
	switch {
	case !announced:
		if bytes.HasSuffix(body, []byte("\n")) {
			r.Doubts = append(r.Doubts, "the body ends in a newline, and no Content-Length says whether it was sent or an editor's")
		}
	case int64(len(body)) == length+1 && body[length] == '\n':
		r.Delivery.Body = body[:length]
	case int64(len(body)) != length:
		return Request{}, wrong("Content-Length says %s, and the body has %d: it is not what was sent", count(length), len(body))
	}
	return r, nil
}

func count(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
