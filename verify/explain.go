package verify

import (
	"bytes"
	"context"

	"oncegate/internal/delivery"
)

// A Trace is what verification saw, for a person who wants to know why a
// delivery was refused.
type Trace struct {
	// Checks are the schemes and alternatives that got as far as comparing.
	Checks []Check
	// Err is what Verify returns.
	Err error
}

// A Check is one comparison.
type Check struct {
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
	// Time is the time of signing, as written.
	Time string
	Fits bool
}

// Explain verifies a delivery and says what it saw on the way.
func (v *Verifier) Explain(ctx context.Context, d *delivery.Delivery) Trace {
	t := &Trace{}
	t.Err = v.verify(ctx, &request{Delivery: d, trace: t})
	return *t
}

// explain adds a check to the trace.
func (c *signed) explain(s *scope, g given, fits bool) {
	check := Check{Place: c.place.String(), Given: g.texts, URL: s.url, Time: s.time, Fits: fits}
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
