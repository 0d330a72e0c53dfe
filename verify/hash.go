package verify

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"io"
)

// newHash returns the hash of that name. MD5 and SHA-1 are here since
// providers use them, not since they should.
func newHash(name string) (func() hash.Hash, error) {
	switch name {
	case "md5":
		return md5.New, nil
	case "sha1":
		return sha1.New, nil
	case "sha256":
		return sha256.New, nil
	case "sha384":
		return sha512.New384, nil
	case "sha512":
		return sha512.New, nil
	}
	return nil, fmt.Errorf("%q is none of md5, sha1, sha256, sha384, sha512", name)
}

// keyedHash is HMAC, or (plain) a hash over a text that holds the secret.
type keyedHash struct {
	hash    func() hash.Hash
	plain   bool
	secrets *keyring[[]byte]
}

func (k *keyedHash) check(_ context.Context, _ *scope, render func(io.Writer, []byte) error, signatures [][]byte) (bool, error) {
	keys, err := k.secrets.get()
	if err != nil {
		return false, &Error{Kind: Unavailable, Place: "secrets", Err: err}
	}
	for _, key := range keys {
		sum, err := k.sum(key, render)
		if err != nil {
			return false, err
		}
		for _, sig := range signatures {
			if hmac.Equal(sum, sig) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (k *keyedHash) sum(key []byte, render func(io.Writer, []byte) error) ([]byte, error) {
	w := k.hash()
	if !k.plain {
		w = hmac.New(k.hash, key)
	}
	if err := render(w, key); err != nil {
		return nil, err
	}
	return w.Sum(nil), nil
}

func (k *keyedHash) signature(render func(io.Writer, []byte) error) ([]byte, error) {
	keys, err := k.secrets.get()
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, ErrCannotSign
	}
	return k.sum(keys[0], render)
}

func (k *keyedHash) accepts(secret string) error { _, err := k.secrets.decode(secret); return err }
func (k *keyedHash) ready() error                { _, err := k.secrets.get(); return err }
