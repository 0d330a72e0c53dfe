package verify

import (
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"hash"
)

// bodyHash is a compiled BodyHash: a hash of the body that stands in the query
// (and so in the signed URL).
type bodyHash struct {
	query string
	new   func() hash.Hash
}

func compileBodyHash(b *BodyHash) (*bodyHash, error) {
	if b == nil {
		return nil, nil
	}
	if b.Query == "" {
		return nil, errors.New("body_hash.query: is missing")
	}
	h, err := newHash(b.Hash)
	return &bodyHash{b.Query, h}, err
}

// check refuses a delivery whose body is not the one that was hashed.
func (b *bodyHash) check(r *request) error {
	if b == nil {
		return nil
	}
	text, err := r.queryValue(b.query)
	if errors.Is(err, errAbsent) {
		return &Error{Kind: Missing, Place: "query " + b.query}
	}
	if err != nil {
		return err
	}
	want, err := hex.DecodeString(text)
	if err != nil {
		return &Error{Kind: Malformed, Place: "query " + b.query, Detail: "no hex"}
	}
	h := b.new()
	h.Write(r.Body)
	if !hmac.Equal(h.Sum(nil), want) {
		return &Error{Kind: Mismatch, Place: "query " + b.query, Detail: "not the hash of this body"}
	}
	return nil
}

// of returns the hash of a body as it stands in the query.
func (b *bodyHash) of(body []byte) string {
	h := b.new()
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
