package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/provider"
	"oncegate/verify"
)

// A sampler makes deliveries of one event, as the route's provider sends them.
type sampler struct {
	route *config.Route
	// first and again are the event's first delivery and a later one, which
	// some providers write differently.
	first, again *delivery.Delivery
	key          string           // empty where the route reads none
	signer       *verify.Verifier // the route's own, unless a key is given
	unsigned     bool             // as it is, without a signature
}

// newSampler makes the preset's sample into an event of its own: with a new ID,
// or with the one that is given.
func newSampler(route *config.Route, target *url.URL, id string) (*sampler, error) {
	if route.Preset == nil || route.Preset.Sample.Method == "" {
		return nil, fmt.Errorf("route %s has no preset with a sample: --body says what to send", route.Name)
	}
	sample := route.Preset.Sample
	at := *target
	if _, query, ok := strings.Cut(sample.Target, "?"); ok && at.RawQuery == "" {
		at.RawQuery = query
	}
	s := &sampler{route: route, signer: route.Verifier, first: deliveryOf(sample.Method, &at, sample.Header, sample.Body)}
	old, err := s.keyOf(s.first)
	if err != nil {
		return nil, fmt.Errorf("the sample has no event key for route %s: %w", route.Name, err)
	}
	from, to, err := renaming(&sample, old, id)
	if err != nil {
		return nil, err
	}
	again := sample.Body
	if sample.Retry != "" {
		again = sample.Retry
	}
	rename(s.first, from, to)
	s.again = deliveryOf(sample.Method, &at, sample.Header, again)
	rename(s.again, from, to)
	if s.key, err = s.keyOf(s.first); err != nil {
		return nil, fmt.Errorf("the sample has no event key: %w", err)
	}
	return s, nil
}

// ownSampler sends a body of the user's own.
func ownSampler(route *config.Route, target *url.URL, header map[string]string, body string) (*sampler, error) {
	d := deliveryOf(route.Methods[0], target, header, body)
	s := &sampler{route: route, signer: route.Verifier, first: d, again: d}
	var err error
	if s.key, err = s.keyOf(d); err != nil {
		return nil, fmt.Errorf("the body has no event key for route %s: %w", route.Name, err)
	}
	return s, nil
}

// renaming says which text of a sample makes it its event, and what to put in its
// place: the ID that is given, or a new one.
func renaming(sample *provider.Sample, key, id string) (from, to string, err error) {
	from, number := lastPart(key)
	if sample.Rename != "" {
		from, number = sample.Rename, strings.Trim(sample.Rename, "0123456789") == ""
	}
	switch {
	case id == "":
		id = likeThis(from)
	case number && strings.Trim(id, "0123456789") != "":
		return "", "", &usageError{errors.New("--event: this provider's IDs are numbers")}
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return "", "", &usageError{errors.New("--event: must be visible ASCII without quotes and backslashes")}
	}
	if !sample.RenameBase64 {
		return from, id, nil
	}
	if len(id)%3 != 0 || strings.Trim(id, alphanumeric) != "" {
		return "", "", &usageError{errors.New("--event: must be of 3, 6, 9 or so letters and digits, as it goes into base64 here")}
	}
	coded := base64.StdEncoding.EncodeToString
	return coded([]byte(from)), coded([]byte(id)), nil
}

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func deliveryOf(method string, target *url.URL, header map[string]string, body string) *delivery.Delivery {
	d := &delivery.Delivery{Method: method, Target: target.RequestURI(), Host: target.Host, Header: http.Header{}, Body: []byte(body)}
	for name, value := range header {
		d.Header.Set(name, value)
	}
	return d
}

// signed returns the n-th delivery of the event, signed now.
func (s *sampler) signed(n int, now time.Time) (*delivery.Delivery, error) {
	d := s.first
	if n > 0 {
		d = s.again
	}
	if s.signer == nil || s.unsigned {
		return d, nil
	}
	done, err := s.signer.Complete(d, now)
	if errors.Is(err, verify.ErrCannotSign) {
		return nil, fmt.Errorf("route %s: %s; --unsigned sends the sample without a signature, and --dry-run prints it: %w", s.route.Name, whyUnsigned(s.route.Preset), err)
	}
	return done, err
}

// whyUnsigned says why a provider's sample can't be signed.
func whyUnsigned(p *provider.Preset) string {
	if p != nil && slices.ContainsFunc(p.Verify, keysElsewhere) {
		return p.Title + " signs with a private key that nobody else holds; a test route may trust one of yours (--make-key makes it, test_key on the route names it)"
	}
	return "no signing key is held: the secret is a public key, or another verifier's; --key names the private one, --make-key makes one for a test route"
}

func keysElsewhere(s verify.Spec) bool {
	return s.Keys != nil || slices.ContainsFunc(s.Any, keysElsewhere)
}

func (s *sampler) keyOf(d *delivery.Delivery) (string, error) {
	if s.route.Rules == nil {
		return "", nil
	}
	values, err := s.route.Rules.Extract(keyextract.Parse(d))
	if err != nil || len(values.Keys) == 0 {
		return "", err
	}
	return values.Keys[0], nil
}

// lastPart returns the last part of an event key as it stands in the delivery,
// and whether it is a number there.
func lastPart(key string) (part string, number bool) {
	part = key[strings.LastIndexByte(key, '/')+1:]
	if digits, ok := strings.CutPrefix(part, "#"); ok {
		return digits, true
	}
	text, err := url.PathUnescape(part)
	if err != nil {
		return part, false
	}
	return text, false
}

// likeThis makes another ID of the same form: what stands before the last
// underscore stays, and digits, hex digits and letters stay what they are.
func likeThis(id string) string {
	keep := strings.LastIndexByte(id, '_') + 1
	letters := "abcdefghijklmnopqrstuvwxyz"
	if strings.Trim(id[keep:], "0123456789abcdefABCDEF-") == "" {
		letters = letters[:6]
	}
	fresh := []byte(id)
	for i, c := range fresh[keep:] {
		switch {
		case c >= '0' && c <= '9':
			fresh[keep+i] = byte('1' + rand.IntN(9))
		case c >= 'a' && c <= 'z':
			fresh[keep+i] = letters[rand.IntN(len(letters))]
		case c >= 'A' && c <= 'Z':
			fresh[keep+i] = letters[rand.IntN(len(letters))] - 'a' + 'A'
		}
	}
	return string(fresh)
}

// rename puts an ID in place of another, wherever that stands.
func rename(d *delivery.Delivery, from, to string) {
	if from == "" {
		return
	}
	d.Target = strings.ReplaceAll(d.Target, from, to)
	d.Body = []byte(strings.ReplaceAll(string(d.Body), from, to))
	for _, values := range d.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], from, to)
		}
	}
}
