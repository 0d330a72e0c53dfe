package verify

import "slices"

// WithTestKey returns the same specs with one key, in PEM, in place of each that
// they would fetch, and whether there was any such: for a test route, on which
// nobody but the holder of that key can make deliveries. It is the caller's to
// say so loudly.
func WithTestKey(specs []Spec, key string) (with []Spec, used bool) {
	with = slices.Clone(specs)
	for i := range with {
		s := &with[i]
		if len(s.Any) > 0 {
			any, inside := WithTestKey(s.Any, key)
			s.Any, used = any, used || inside
		}
		if s.Keys != nil {
			s.Keys, s.Secrets, s.Encoding, used = nil, []string{key}, "", true
		}
	}
	return with, used
}

// NewTestKey makes a private key, in PEM, for WithTestKey or for a scheme whose
// secret is a public key. Where neither is so it is ErrCannotSign.
func NewTestKey(specs []Spec) (string, error) {
	for i := range specs {
		s := specs[i]
		if len(s.Any) > 0 {
			if key, err := NewTestKey(s.Any); err == nil {
				return key, nil
			}
		}
		if s.public() {
			s.Keys = nil
			return s.generate()
		}
	}
	return "", ErrCannotSign
}

// public reports whether the scheme checks with a public key.
func (s *Spec) public() bool {
	return s.Ed25519 || s.ECDSA != "" || s.RSA != "" || s.JWT == "RS256" || s.JWT == "ES256"
}

// Signing returns a Verifier of the same schemes that signs with this private key,
// in PEM, wherever they check with a public one.
func (v *Verifier) Signing(key string) (*Verifier, error) {
	if v == nil {
		return nil, ErrCannotSign
	}
	specs, _ := WithTestKey(v.specs, key)
	signWith(specs, key)
	return Compile(specs, v.options)
}

func signWith(specs []Spec, key string) {
	for i := range specs {
		signWith(specs[i].Any, key) // WithTestKey made it our own
		if specs[i].public() {
			specs[i].Secrets = []string{key}
		}
	}
}
