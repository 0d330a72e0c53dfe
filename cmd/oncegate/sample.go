package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/verify"
)

// A sampler makes deliveries of one event, as the route's provider sends them.
type sampler struct {
	route *config.Route
	// first and again are the event's first delivery and a later one, which
	// some providers write differently.
	first, again *delivery.Delivery
	key          string
}

// newSampler makes the preset's sample into an event of its own: with a new ID,
// or with the one that is given.
func newSampler(route *config.Route, target *url.URL, id string) (*sampler, error) {
	if route.Preset == nil || route.Preset.Sample.Method == "" {
		return nil, fmt.Errorf("route %s has no preset with a sample: only a provider's deliveries can be sent", route.Name)
	}
	sample := route.Preset.Sample
	at := *target
	if _, query, ok := strings.Cut(sample.Target, "?"); ok && at.RawQuery == "" {
		at.RawQuery = query
	}
	s := &sampler{route: route, first: deliveryOf(sample.Method, &at, sample.Header, sample.Body)}
	old, err := s.keyOf(s.first)
	if err != nil {
		return nil, fmt.Errorf("the sample has no event key for route %s: %w", route.Name, err)
	}
	last, number := lastPart(old)
	switch {
	case id == "":
		id = likeThis(last)
	case number && strings.Trim(id, "0123456789") != "":
		return nil, &usageError{errors.New("--event: this provider's IDs are numbers")}
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return nil, &usageError{errors.New("--event: must be visible ASCII without quotes and backslashes")}
	}
	again := sample.Body
	if sample.Retry != "" {
		again = sample.Retry
	}
	rename(s.first, last, id)
	s.again = deliveryOf(sample.Method, &at, sample.Header, again)
	rename(s.again, last, id)
	if s.key, err = s.keyOf(s.first); err != nil {
		return nil, fmt.Errorf("the sample has no event key: %w", err)
	}
	return s, nil
}

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
	if s.route.Verifier == nil {
		return d, nil
	}
	done, err := s.route.Verifier.Complete(d, now)
	if errors.Is(err, verify.ErrCannotSign) {
		return nil, fmt.Errorf("route %s can't be sent to: its provider signs with a private key, or signs elsewhere: %w", s.route.Name, err)
	}
	return done, err
}

func (s *sampler) keyOf(d *delivery.Delivery) (string, error) {
	if s.route.Rules == nil {
		return "", errors.New("the route reads no event key")
	}
	values, err := s.route.Rules.Extract(keyextract.Parse(d))
	if err != nil {
		return "", err
	}
	if len(values.Keys) == 0 {
		return "", errors.New("the sample holds no event")
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
