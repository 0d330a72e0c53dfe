package verify

import (
	"context"
	"errors"
	"net/http"
	"time"

	"oncegate/internal/delivery"
)

// Secrets returns the raw secret texts, whose one trailing newline (of a
// mounted file) is already gone. It is asked for each delivery, so that secrets
// can change under a running process.
type Secrets func() ([]string, error)

// Options is what schemes need beside their Specs.
type Options struct {
	// Secrets are the route's; a Spec may have its own.
	Secrets Secrets
	// PublicURL is what senders were told, up to the target:
	// "https://shop.example", or with the path that a proxy in front strips.
	PublicURL string
	// Params are the values of the preset's parameters, for {param:name}.
	Params map[string]string
	// Transport fetches keys and asks verifiers of one's own, in tests. Nil is
	// one that doesn't fetch keys from private addresses.
	Transport http.RoundTripper
}

// A scheme is one compiled Spec.
type scheme interface {
	// plausible says what the headers alone give away.
	plausible(h http.Header) error
	verify(ctx context.Context, r *request) error
	// sign adds to s what the scheme adds to a delivery.
	sign(s *signing) error
	// judges reports whether the scheme refuses what was signed long ago.
	judges() bool
	// accepts says what is wrong with a secret of the route's.
	accepts(secret string) error
}

// A Verifier checks deliveries by schemes that must all hold. It may be used
// by many goroutines at once. A nil Verifier refuses everything: a route that
// isn't verified doesn't ask.
type Verifier struct {
	schemes []scheme
	specs   []Spec // what it was compiled from, for Hints
	options Options
}

var errNothing = &Error{Kind: Unavailable, Detail: "nothing says how to verify"}

// Plausible looks at the headers alone, before the body is read. Its error is
// an *Error; nil means that reading the body is worth while, and no more.
func (v *Verifier) Plausible(h http.Header) error {
	if v == nil {
		return errNothing
	}
	for _, s := range v.schemes {
		if err := s.plausible(h); err != nil {
			return err
		}
	}
	return nil
}

// Verify checks a delivery: nil means that every scheme holds. Its error is an
// *Error. ctx bounds what is asked of others (keys, a verifier of one's own).
func (v *Verifier) Verify(ctx context.Context, d *delivery.Delivery) error {
	return v.verify(ctx, &request{Delivery: d})
}

func (v *Verifier) verify(ctx context.Context, r *request) error {
	if v == nil || len(v.schemes) == 0 {
		return errNothing
	}
	for _, s := range v.schemes {
		if err := s.verify(ctx, r); err != nil {
			return asError(err)
		}
	}
	return nil
}

// Judges reports whether a delivery that is kept and sent later has to be
// signed anew, since the app checks the time of signing too.
func (v *Verifier) Judges() bool {
	if v == nil {
		return false
	}
	for _, s := range v.schemes {
		if s.judges() {
			return true
		}
	}
	return false
}

// asError wraps what is not an *Error already.
func asError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Malformed, Err: err}
}

// headerOnly makes a delivery of which only the headers are known.
func headerOnly(h http.Header) *delivery.Delivery {
	return &delivery.Delivery{Header: h, Arrived: time.Time{}}
}
