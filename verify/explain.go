package verify

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"oncegate/internal/delivery"
)

// A Trace is what verification saw, for a person who wants to know why a
// delivery was refused.
type Trace struct {
	// Checks are the schemes and alternatives that got as far as comparing, or as
	// asking for the key to compare with.
	Checks []Check
	// Err is what Verify returns.
	Err error
}

// A Check is one comparison.
type Check struct {
	// Item is the number, from 1 on, of the item that is signed; 0: the delivery.
	Item int
	// Place is where the signatures were found.
	Place string
	// Signed is the signed text; a secret in it is written as ***.
	Signed []byte
	// Given are the signatures of the delivery, as written there.
	Given []string
	// Computed are the first 8 characters of what each secret gives.
	Computed []string
	// URL is the URL that went into the signed text, if one did.
	URL string
	// Time is the time of signing, as written; At the same, read.
	Time string
	At   time.Time
	// Asks says that the key was not at hand, so that nothing was compared.
	Asks bool
	Fits bool
}

// Explain verifies a delivery and says what it saw on the way.
func (v *Verifier) Explain(ctx context.Context, d *delivery.Delivery) Trace {
	t := &Trace{}
	t.Err = v.verify(ctx, &request{Delivery: d, trace: t})
	return *t
}

// ErrOffline is the cause of an error where the Verifier may ask nobody.
var ErrOffline = errors.New("verify: nobody is asked")

// Offline returns the same Verifier, but one that asks nobody for keys or for a
// judgement: what it can't tell by itself is Unavailable, by ErrOffline.
func (v *Verifier) Offline() (*Verifier, error) {
	if v == nil {
		return nil, nil
	}
	o := v.options
	o.Transport = nobody{}
	return Compile(v.specs, o)
}

type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) { return nil, ErrOffline }

// explain adds a check to the trace; err is what kept it from comparing.
func (c *signed) explain(s *scope, g given, fits bool, err error) {
	check := Check{Item: s.item, Place: c.place.String(), Given: g.texts, URL: s.url, Time: s.time, Fits: fits, Asks: err != nil}
	if c.time != nil {
		check.At, _ = c.time.parse(s.time) // read before, without a fault
	}
	var text bytes.Buffer
	if err := c.render(s)(&text, []byte("***")); err == nil {
		check.Signed = text.Bytes()
	}
	if h, ok := c.engine.(*keyedHash); ok {
		check.Computed = c.computed(s, h)
	}
	s.r.trace.Checks = append(s.r.trace.Checks, check)
}

func (c *signed) computed(s *scope, h *keyedHash) (prefixes []string) {
	keys, err := h.secrets.get()
	if err != nil {
		return nil
	}
	for _, key := range keys {
		sum, err := h.sum(key, c.render(s))
		if err != nil {
			return nil
		}
		prefixes = append(prefixes, c.format.encode(sum)[:8])
	}
	return prefixes
}
