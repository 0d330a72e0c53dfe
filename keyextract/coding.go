package keyextract

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
)

// Bounds of a body whose content coding is undone: in all, and, past the first
// maxPlain bytes, relative to what was sent.
const (
	maxDecoded = 32 << 20
	maxPlain   = 1 << 20
	maxRatio   = 100
)

// decodeBody undoes gzip or deflate. Another coding that compresses is refused by
// its name: read as it is, such a body would be a form without fields, and the
// delivery one without a key.
func decodeBody(codings []string, body []byte) ([]byte, *Error) {
	if len(body) == 0 || len(codings) == 0 {
		return body, nil
	}
	for _, coding := range codings {
		if coding != "gzip" && coding != "x-gzip" && coding != "deflate" {
			return nil, malformed("the body's Content-Encoding is %s, and only gzip and deflate can be undone here", coding)
		}
	}
	if len(codings) > 1 {
		return nil, malformed("a body with several content codings")
	}
	coding := codings[0]
	r, err := decoder(coding, body)
	if err != nil {
		return nil, malformed("the body is not %s, as its Content-Encoding says", coding)
	}
	limit := min(maxDecoded, max(maxPlain, maxRatio*len(body)))
	plain, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, malformed("the body is not %s, as its Content-Encoding says, or cut off", coding)
	}
	if len(plain) > limit {
		return nil, malformed("the body grows over %d bytes when its content coding is undone", limit)
	}
	return plain, nil
}

func decoder(coding string, body []byte) (io.Reader, error) {
	if coding != "deflate" {
		return gzip.NewReader(bytes.NewReader(body))
	}
	// "deflate" means the zlib format (RFC 9110, section 8.4.1.2), but some
	// senders leave its frame out.
	if r, err := zlib.NewReader(bytes.NewReader(body)); err == nil {
		return r, nil
	}
	return flate.NewReader(bytes.NewReader(body)), nil
}
