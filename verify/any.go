package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// anyOf holds alternatives, one of which must hold.
type anyOf []scheme

func (c *compiler) alternatives(field string, s *Spec) scheme {
	var a anyOf
	before := len(c.faults)
	for i := range s.Any {
		at := fmt.Sprintf("%s.any[%d]", field, i)
		if s.Any[i].None || len(s.Any[i].IPs) > 0 {
			c.fault(at, "none and ips are no alternatives")
			continue
		}
		// A route's secrets are for all alternatives; what one has of its own is for it.
		a = append(a, c.scheme(at, &s.Any[i], len(s.Any[i].Secrets) == 0))
	}
	if len(c.faults) > before {
		return a
	}
	// A secret that none can use is a mistake; one that some can't is not.
	secrets, err := c.secrets(s)()
	if !c.note(field+".secrets", err) {
		return a
	}
	for i, text := range secrets {
		if err := a.accepts(text); err != nil {
			c.fault(field+".secrets", "secret %d of %d: %s", i+1, len(secrets), err)
		}
	}
	return a
}

// plausible returns nil where one alternative is plausible.
func (a anyOf) plausible(h http.Header) error {
	return a.first(func(s scheme) error { return s.plausible(h) })
}

func (a anyOf) verify(ctx context.Context, r *request) error {
	return a.first(func(s scheme) error { return s.verify(ctx, r) })
}

// first returns nil at the first alternative that holds, else the error that
// says most: of the alternative that came furthest.
func (a anyOf) first(try func(scheme) error) error {
	var best error
	for _, s := range a {
		err := try(s)
		if err == nil {
			return nil
		}
		if best == nil || tells(err) > tells(best) {
			best = err
		}
	}
	return best
}

// tells ranks errors by how far verification came.
func tells(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Malformed
}

func (a anyOf) judges() bool {
	for _, s := range a {
		if s.judges() {
			return true
		}
	}
	return false
}

func (a anyOf) accepts(secret string) error {
	if strings.TrimSpace(secret) == "" {
		return errBlank
	}
	var all []error
	for _, s := range a {
		err := s.accepts(secret)
		if err == nil {
			return nil
		}
		if !slices.ContainsFunc(all, func(said error) bool { return said.Error() == err.Error() }) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// sign uses the first alternative that can, those that the delivery's headers
// already speak for first.
func (a anyOf) sign(s *signing) error {
	var order anyOf
	for _, alt := range a {
		if alt.plausible(s.d.Header) == nil {
			order = append(order, alt)
		}
	}
	var best error
	for _, alt := range append(order, a...) {
		try := &signing{d: clone(s.d), now: s.now, set: s.set.Clone(), marks: s.marks}
		err := alt.sign(try)
		if err == nil {
			*s = *try
			return nil
		}
		if best == nil || errors.Is(best, ErrCannotSign) {
			best = err
		}
	}
	return best
}
