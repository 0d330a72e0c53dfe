// Package capture reads a request that somebody kept: as raw HTTP, as a curl
// command, or in a HAR file, as browsers and webhook inspectors write them.
//
//	requests, err := capture.Read(text, capture.Options{})
//	...
//	requests[0].Delivery // not yet with a time of arrival
//
// A capture is often not what was sent, byte for byte: editors add newlines,
// and tools write bodies anew. Where a form is known to lose bytes, a Request
// says so in its Doubts, since a signature may then not fit although the
// delivery was genuine.
package capture

import (
	"bytes"
	"errors"
	"fmt"

	"oncegate/internal/delivery"
)

// A Request is one captured request.
type Request struct {
	Delivery *delivery.Delivery
	// Doubts say why the bytes may not be those that were sent.
	Doubts []string
}

// Options say what a capture may refer to.
type Options struct {
	// ReadFile returns a file that a curl command names, as in --data-binary
	// @body.json. Nil: none may be named.
	ReadFile func(name string) ([]byte, error)
}

// ErrFormat says that a text holds no request in a form that is known; it is
// wrapped with what is wrong.
var ErrFormat = errors.New("no captured request")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// Read returns the requests of a capture: one, or all entries of a HAR file.
func Read(text []byte, o Options) ([]Request, error) {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return nil, wrong("it is empty")
	case trimmed[0] == '{':
		return readHAR(trimmed)
	case isCurl(trimmed):
		r, err := readCurl(string(trimmed), o)
		return []Request{r}, err
	}
	r, err := readRaw(trimmed)
	return []Request{r}, err
}
