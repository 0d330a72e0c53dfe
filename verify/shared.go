package verify

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// shared is a secret that arrives as it is: a token in a header, in the query
// or in the body, or a user and password. It says who sends and nothing about
// what is sent.
type shared struct {
	place   place
	before  string // literal text around the token
	after   string
	basic   bool
	within  string
	absent  absent
	secrets *keyring[[sha256.Size]byte]
}

func (c *compiler) shared(field string, s *Spec, lenient bool) scheme {
	out := &shared{basic: s.Basic, within: s.Within, absent: s.Absent}
	var err error
	headers := s.Header
	if s.Basic {
		headers = []string{"Authorization"}
	}
	if out.place, err = onePlace(headers, "", s.JSON, s.Form, s.Query); c.note(field, err) && out.place.kind == "" {
		c.fault(field, "say where the token stands: header, json, form or query")
	}
	if s.Format != "" && s.Token {
		var ok bool
		if out.before, out.after, ok = strings.Cut(s.Format, "{token}"); !ok {
			c.fault(field+".format", "holds no {token}")
		}
	}
	decode := func(text string) (sum [sha256.Size]byte, err error) {
		switch {
		case strings.TrimSpace(text) == "", s.Basic && strings.Trim(text, ": \t\r\n") == "":
			return sum, errBlank
		case s.Basic && !strings.Contains(text, ":"):
			return sum, errors.New(`has to be "user:password"`)
		}
		return sha256.Sum256([]byte(text)), nil
	}
	out.secrets = &keyring[[sha256.Size]byte]{source: c.secrets(s), decode: decode, lenient: lenient}
	_, err = out.secrets.get()
	c.note(field+".secrets", err)
	return out
}

func (t *shared) plausible(h http.Header) error {
	if t.place.kind != "header" {
		return nil
	}
	return t.verify(context.Background(), &request{Delivery: headerOnly(h)})
}

func (t *shared) verify(_ context.Context, r *request) error {
	if err := t.absent.check(r.Header); err != nil {
		return err
	}
	text, err := t.place.one(&scope{r: r, within: t.within})
	if err != nil {
		return err
	}
	given, err := t.unwrap(text)
	if err != nil {
		return err
	}
	keys, err := t.secrets.get()
	if err != nil {
		return &Error{Kind: Unavailable, Place: "secrets", Err: err}
	}
	// Sums are compared, so that the time says nothing of the length either.
	sum, fits := sha256.Sum256([]byte(given)), 0
	for _, key := range keys {
		fits |= subtle.ConstantTimeCompare(sum[:], key[:])
	}
	if fits != 1 {
		return &Error{Kind: Mismatch, Place: t.place.String(), Detail: "not the shared secret"}
	}
	return nil
}

// unwrap takes the secret out of what surrounds it.
func (t *shared) unwrap(text string) (string, error) {
	malformed := &Error{Kind: Malformed, Place: t.place.String(), Detail: "not of the known form"}
	if t.basic {
		scheme, rest, _ := strings.Cut(text, " ")
		if !strings.EqualFold(scheme, "Basic") {
			return "", malformed
		}
		pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
		if err != nil || !strings.Contains(string(pair), ":") {
			return "", malformed
		}
		return string(pair), nil
	}
	if len(text) < len(t.before)+len(t.after) || !strings.HasPrefix(text, t.before) || !strings.HasSuffix(text, t.after) {
		return "", malformed
	}
	return text[len(t.before) : len(text)-len(t.after)], nil
}

func (t *shared) sign(s *signing) error {
	raw, err := t.secrets.source()
	if err != nil {
		return err
	}
	t.absent.leaveOut(s)
	for _, text := range raw {
		if t.accepts(text) != nil {
			continue
		}
		switch {
		case t.basic:
			s.header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
		case t.place.kind == "header":
			s.header(t.place.arg, t.before+text+t.after)
		case s.marks:
			return s.replace(markSignature, t.before+text+t.after)
		}
		return nil
	}
	return ErrCannotSign
}

func (t *shared) judges() bool                { return false }
func (t *shared) accepts(secret string) error { _, err := t.secrets.decode(secret); return err }
