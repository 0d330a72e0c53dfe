package verify

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A keyring turns secret texts into keys and keeps the keys until the texts
// change. Its errors name the secret by its number, never by its text.
type keyring[K any] struct {
	source Secrets
	decode func(text string) (K, error)
	// lenient leaves out texts that can't be decoded: they belong to another
	// alternative of the same route.
	lenient bool

	mu   sync.Mutex // guards what follows
	raw  []string
	keys []K
}

// errNoSecret says that a scheme was configured without a secret.
var errNoSecret = errors.New("no secret is configured")

// get returns the keys of the secrets as they are now.
func (k *keyring[K]) get() ([]K, error) {
	raw, err := k.source()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.raw != nil && slices.Equal(raw, k.raw) {
		return k.keys, nil
	}
	if len(raw) == 0 {
		return nil, errNoSecret
	}
	var keys []K
	var faults []error
	for i, text := range raw {
		key, err := k.decode(text)
		switch {
		case err == nil:
			keys = append(keys, key)
		case !k.lenient || strings.TrimSpace(text) == "":
			faults = append(faults, fmt.Errorf("secret %d of %d: %w", i+1, len(raw), err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	k.raw, k.keys = slices.Clone(raw), keys
	return keys, nil
}

// errBlank says that a secret is empty, or nothing but blanks.
var errBlank = errors.New("is empty")

// hmacKey decodes the secret of a keyed hash.
func hmacKey(encoding string) (func(string) ([]byte, error), error) {
	var decode func(string) ([]byte, error)
	switch encoding {
	case "", "text":
		decode = func(s string) ([]byte, error) { return []byte(s), nil }
	case "hex":
		decode = func(s string) ([]byte, error) {
			b, err := hex.DecodeString(s)
			if err != nil {
				return nil, errors.New("is no hex")
			}
			return b, nil
		}
	case "base64":
		decode = decodeBase64
	case "whsec":
		decode = func(s string) ([]byte, error) {
			s = strings.TrimPrefix(s, "v1,")
			return decodeBase64(strings.TrimPrefix(s, "whsec_"))
		}
	case "sha1":
		decode = func(s string) ([]byte, error) {
			sum := sha1.Sum([]byte(s))
			return sum[:], nil
		}
	default:
		return nil, fmt.Errorf("encoding: %q is none of text, hex, base64, whsec, sha1", encoding)
	}
	return func(text string) ([]byte, error) {
		if strings.TrimSpace(text) == "" {
			return nil, errBlank
		}
		key, err := decode(text)
		if err == nil && len(key) == 0 {
			err = errBlank
		}
		return key, err
	}, nil
}

// decodeBase64 reads standard base64, padded or not.
func decodeBase64(s string) ([]byte, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, errors.New("is no base64")
	}
	return b, nil
}
