package verify

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"oncegate/internal/delivery"
)

// ErrCannotSign says that no signing key is held: only a public key is known,
// or others make the signature.
var ErrCannotSign = errors.New("verify: no signing key is held")

// Marks that stand in the body or target of a sample for what the scheme puts
// there; Complete replaces them.
const (
	markTime      = "@time@"
	markSignature = "@signature@"
	markBodyHash  = "@bodyhash@"
)

// A signing is a delivery on its way to being signed.
type signing struct {
	d   *delivery.Delivery // a copy, changed as schemes go along
	now time.Time
	set http.Header // header lines that were set
	// marks: body and target may be changed too, at their marks.
	marks bool
}

// Sign returns the header lines that make the delivery pass at the moment now,
// for one that is sent later than it came. The delivery isn't changed. The
// route's first secret is used. Where nothing has to change the result is
// empty; where the key is not held, or the signature stands in the body and
// bears a time that is judged, the error is ErrCannotSign.
func (v *Verifier) Sign(d *delivery.Delivery, now time.Time) (http.Header, error) {
	s, err := v.sign(d, now, false)
	if err != nil {
		return nil, err
	}
	return s.set, nil
}

// CanSign reports whether the signing key is held, so that Sign may succeed.
func (v *Verifier) CanSign() bool {
	_, err := v.Sign(&delivery.Delivery{Method: http.MethodPost, Target: "/"}, time.Unix(0, 0))
	return !errors.Is(err, ErrCannotSign)
}

// Complete returns a copy of a sample that is signed at the moment now, in the
// body and the target too: "@signature@", "@time@" and "@bodyhash@" there are
// replaced. Arrived of the copy is now.
func (v *Verifier) Complete(d *delivery.Delivery, now time.Time) (*delivery.Delivery, error) {
	s, err := v.sign(d, now, true)
	if err != nil {
		return nil, err
	}
	return s.d, nil
}

func (v *Verifier) sign(d *delivery.Delivery, now time.Time, marks bool) (*signing, error) {
	if v == nil {
		return nil, ErrCannotSign
	}
	s := &signing{d: clone(d), now: now, set: http.Header{}, marks: marks}
	s.d.Arrived = now
	for _, scheme := range v.schemes {
		if err := scheme.sign(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func clone(d *delivery.Delivery) *delivery.Delivery {
	c := *d
	c.Header = maps.Clone(d.Header)
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Body = slices.Clone(d.Body)
	return &c
}

// header sets a header line.
func (s *signing) header(name, value string) {
	s.set.Set(name, value)
	s.d.Header.Set(name, value)
}

// replace puts text at the first mark in the body, or else in the target. A
// sample without the mark is none of this scheme's: ErrCannotSign.
func (s *signing) replace(mark, text string) error {
	if before, after, ok := bytes.Cut(s.d.Body, []byte(mark)); ok {
		s.d.Body = slices.Concat(before, []byte(text), after)
		return nil
	}
	before, after, ok := strings.Cut(s.d.Target, mark)
	if !ok {
		return ErrCannotSign
	}
	s.d.Target = before + text + after
	return nil
}

// sign adds the signature, and the time where the scheme has one.
func (c *signed) sign(s *signing) error {
	if c.place.kind != "header" && !s.marks {
		if c.judges() {
			return ErrCannotSign
		}
		return nil // what stands in the body stands there still
	}
	if err := c.ready(); err != nil {
		return err
	}
	c.absent.leaveOut(s)
	if c.bodyHash != nil && s.marks {
		if err := s.replace(markBodyHash, c.bodyHash.of(s.d.Body)); err != nil {
			return err
		}
	}
	text, err := c.signTime(s)
	if err != nil {
		return err
	}
	scopes, err := c.scopes(&request{Delivery: s.d})
	if err != nil {
		return err
	}
	for _, sc := range scopes {
		sc.time = text
		if c.url != nil {
			urls, err := c.url.of(s.d.Target)
			if err != nil {
				return err
			}
			sc.url = urls[0]
		}
		sig, err := c.signature(c.render(sc))
		if err != nil {
			return err
		}
		written := c.format.write(sig, text)
		if c.place.kind == "header" {
			s.header(c.headerName(), written)
		} else if err := s.replace(markSignature, written); err != nil {
			return err
		}
	}
	return nil
}

// signTime puts the time of signing where it belongs, and returns it.
func (c *signed) signTime(s *signing) (string, error) {
	if c.time == nil {
		return "", nil
	}
	text := c.time.write(s.now)
	switch {
	case c.time.place.kind == "header":
		s.header(c.time.place.arg, text)
	case c.time.place.kind == "": // in the signature
	case !s.marks:
		return "", ErrCannotSign
	default:
		return text, s.replace(markTime, text)
	}
	return text, nil
}

// headerName is the header that a signature is written to.
func (c *signed) headerName() string {
	name := c.place.all[0]
	if n := len(name) - 1; name[n] == '*' {
		return name[:n] + "1"
	}
	return name
}
