package verify

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// A keySource gets public keys from pinned hosts: a certificate whose URL the
// delivery names, a set of keys at a fixed URL, or one key by its ID from an
// API that wants credentials.
type keySource struct {
	fetch   *fetcher
	pins    *pins
	cert    place             // the place of the certificate's URL
	url     string            // of the set of keys, or of the API
	post    map[string]string // what the API is asked
	params  map[string]string
	secrets Secrets
}

func (c *compiler) keySource(k *Keys) (*keySource, error) {
	p, err := compilePins(k)
	if err != nil {
		return nil, err
	}
	s := &keySource{fetch: c.fetch, pins: p, post: k.Post, params: c.o.Params, secrets: c.o.Secrets}
	switch {
	case (k.Certificate != "") == (k.URL != ""):
		return nil, errors.New("keys: either certificate or url has to be set")
	case k.Certificate != "":
		s.cert, err = parsePlace(k.Certificate)
		return s, err
	}
	if s.url, err = p.allow(k.URL); err != nil {
		return nil, errors.New("keys.url: " + err.Error())
	}
	return s, nil
}

// certificate returns the key of the certificate that the delivery names.
func (k *keySource) certificate(ctx context.Context, s *scope) ([]publicKey, error) {
	if k.cert.kind == "" {
		return nil, unavailable(errors.New("keys.url belongs to jwt; this scheme needs keys.certificate"))
	}
	text, err := k.cert.one(s)
	if err != nil {
		return nil, err
	}
	url, err := k.pins.allow(text)
	if err != nil {
		return nil, &Error{Kind: Malformed, Place: k.cert.String(), Err: err}
	}
	body, err := k.fetch.get(ctx, question{url: url}, false)
	if err != nil {
		return nil, unavailable(err)
	}
	block, _ := pem.Decode(body)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, unavailable(errors.New("no certificate stands there"))
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, unavailable(err)
	}
	if at := s.r.Arrived; at.Before(cert.NotBefore) || at.After(cert.NotAfter) {
		return nil, &Error{Kind: Mismatch, Place: k.cert.String(), Detail: "the certificate is not valid at this time"}
	}
	return []publicKey{{public: cert.PublicKey}}, nil
}

// unavailable says that a key could not be had.
func unavailable(err error) error {
	return &Error{Kind: Unavailable, Place: "key", Detail: "it could not be fetched", Err: err}
}

// byID returns the keys with that ID. A set that doesn't know it is fetched
// anew, since keys rotate.
func (k *keySource) byID(ctx context.Context, kid string) ([]crypto.PublicKey, error) {
	if kid == "" || len(kid) > 256 {
		return nil, &Error{Kind: Malformed, Place: "token", Detail: "names no key"}
	}
	if k.post != nil {
		return k.fromAPI(ctx, kid)
	}
	for _, newer := range []bool{false, true} {
		body, err := k.fetch.get(ctx, question{url: k.url}, newer)
		if err != nil {
			return nil, unavailable(err)
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(body, &set); err != nil {
			return nil, unavailable(errors.New("no set of keys stands there"))
		}
		if keys := usable(set.Key(kid)); len(keys) > 0 {
			return keys, nil
		}
	}
	return nil, &Error{Kind: Mismatch, Place: "token", Detail: "names a key that is not in the set"}
}

func (k *keySource) fromAPI(ctx context.Context, kid string) ([]crypto.PublicKey, error) {
	secrets, err := k.secrets()
	if err != nil || len(secrets) == 0 {
		return nil, &Error{Kind: Unavailable, Place: "secrets", Err: errors.Join(errNoSecret, err)}
	}
	ask := map[string]string{}
	for name, text := range k.post {
		text = strings.ReplaceAll(text, "{kid}", kid)
		ask[name] = expandParams(strings.ReplaceAll(text, "{secret}", secrets[0]), k.params)
	}
	post, err := json.Marshal(ask)
	if err != nil {
		return nil, unavailable(err)
	}
	body, err := k.fetch.get(ctx, question{url: k.url, post: string(post)}, false)
	if err != nil {
		return nil, unavailable(err)
	}
	var answer struct {
		Key jose.JSONWebKey `json:"key"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, unavailable(errors.New("the answer holds no key"))
	}
	return usable([]jose.JSONWebKey{answer.Key}), nil
}

func usable(set []jose.JSONWebKey) (keys []crypto.PublicKey) {
	for _, key := range set {
		if kindOf(key.Key) != "" {
			keys = append(keys, key.Key)
		}
	}
	return keys
}

// expandParams puts the values of parameters into a text.
func expandParams(text string, params map[string]string) string {
	for name, value := range params {
		text = strings.ReplaceAll(text, "{param:"+name+"}", value)
	}
	return text
}
