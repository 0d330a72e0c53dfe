// Package verify checks signatures.
package verify

import (
	"context"
	"errors"
	"net/http"
	"time"

	"oncegate/internal/delivery"
)

// Secrets returns the raw secret texts. It is asked for each delivery, so that
// secrets can change under a running process.
type Secrets func() ([]string, error)

// Options is what a scheme needs beside its Spec.
type Options struct {
	// Secrets are the route's.
	Secrets Secrets
	// PublicURL is what senders were told of where they deliver, without the
	// target: "https://shop.example".
	PublicURL string
	// Params are the values of the preset's parameters, for {param:name}.
	Params map[string]string
	// Transport fetches keys and asks verifiers of one's own. Nil is a
	// transport that refuses private addresses for keys.
	Transport http.RoundTripper
}

// ErrCannotSign says that no signing key is held.
var ErrCannotSign = errors.New("verify: no signing key is held")

// A Verifier checks deliveries. It may be used by many goroutines at once.
type Verifier struct{}

// Compile checks specs.
func Compile(specs []Spec, o Options) (*Verifier, error) { return nil, nil }

// Plausible looks at the headers alone, before the body is read.
func (v *Verifier) Plausible(h http.Header) error { return errors.New("verify: nothing compiled") }

// Verify checks a delivery.
func (v *Verifier) Verify(ctx context.Context, d *delivery.Delivery) error {
	return errors.New("verify: nothing compiled")
}

// Sign returns the header lines to set.
func (v *Verifier) Sign(d *delivery.Delivery, now time.Time) (http.Header, error) {
	return nil, ErrCannotSign
}
