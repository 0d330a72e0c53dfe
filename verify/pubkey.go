package verify

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A publicKey is a key to check with and, where the secret was a private key,
// to sign with.
type publicKey struct {
	public  crypto.PublicKey
	private crypto.Signer // nil in most cases
}

// asymmetric is a scheme of public keys.
type asymmetric struct {
	word    string // ed25519, ecdsa, rsa
	hash    crypto.Hash
	secrets *keyring[publicKey]
	keys    *keySource // nil: the keys are the route's secrets
}

func (c *compiler) publicKey(s *Spec, word string, lenient bool) (engine, int, error) {
	a := &asymmetric{word: word}
	size := 0
	switch name := s.ECDSA + s.RSA; {
	case word == "ed25519":
		size = ed25519.SignatureSize
	case name == "sha256":
		a.hash = crypto.SHA256
	case name == "sha512":
		a.hash = crypto.SHA512
	case name == "sha1" && word == "rsa":
		a.hash = crypto.SHA1
	default:
		return nil, 0, fmt.Errorf("%q is none of sha256, sha512 (sha1 with rsa)", name)
	}
	if s.Keys != nil {
		var err error
		a.keys, err = c.keySource(s.Keys)
		return a, size, err
	}
	decode, err := publicKeyDecoder(s.Encoding, word)
	a.secrets = &keyring[publicKey]{source: c.secrets(s), decode: decode, lenient: lenient}
	return a, size, err
}

func (a *asymmetric) check(ctx context.Context, s *scope, render func(io.Writer, []byte) error, signatures [][]byte) (bool, error) {
	var keys []publicKey
	var err error
	if a.keys != nil {
		keys, err = a.keys.certificate(ctx, s)
	} else if keys, err = a.secrets.get(); err != nil {
		err = &Error{Kind: Unavailable, Place: "secrets", Err: err}
	}
	if err != nil {
		return false, err
	}
	digest, err := a.digest(render)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		for _, sig := range signatures {
			if a.fits(key.public, digest, sig) {
				return true, nil
			}
		}
	}
	return false, nil
}

// digest returns what is signed: a hash of the text, or for ed25519 the text.
func (a *asymmetric) digest(render func(io.Writer, []byte) error) ([]byte, error) {
	if a.hash == 0 {
		var b bytes.Buffer
		err := render(&b, nil)
		return b.Bytes(), err
	}
	h := a.hash.New()
	if err := render(h, nil); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

func (a *asymmetric) fits(key crypto.PublicKey, digest, sig []byte) bool {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return a.word == "ed25519" && ed25519.Verify(k, digest, sig)
	case *ecdsa.PublicKey:
		return a.word == "ecdsa" && ecdsa.VerifyASN1(k, digest, sig)
	case *rsa.PublicKey:
		return a.word == "rsa" && rsa.VerifyPKCS1v15(k, a.hash, digest, sig) == nil
	}
	return false
}

func (a *asymmetric) signature(render func(io.Writer, []byte) error) ([]byte, error) {
	if a.keys != nil {
		return nil, ErrCannotSign
	}
	keys, err := a.secrets.get()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if key.private == nil {
			continue
		}
		digest, err := a.digest(render)
		if err != nil {
			return nil, err
		}
		return key.private.Sign(rand.Reader, digest, a.hash)
	}
	return nil, ErrCannotSign
}

func (a *asymmetric) accepts(secret string) error {
	if a.secrets == nil {
		return errors.New("keys are fetched, and no secret is needed")
	}
	_, err := a.secrets.decode(secret)
	return err
}

func (a *asymmetric) ready() error {
	if a.secrets == nil {
		return nil
	}
	_, err := a.secrets.get()
	return err
}

// publicKeyDecoder reads a key for one scheme: PEM of any usual kind, or the
// encoding's bytes as DER or, for ed25519, as they are.
func publicKeyDecoder(encoding, word string) (func(string) (publicKey, error), error) {
	var raw func(string) ([]byte, error)
	switch encoding {
	case "", "base64":
		raw = decodeBase64
	case "hex":
		raw = func(s string) ([]byte, error) {
			b, err := hex.DecodeString(s)
			if err != nil {
				return nil, errors.New("is no hex")
			}
			return b, nil
		}
	case "whpk":
		raw = decodeWhpk
	default:
		return nil, fmt.Errorf("encoding: %q is none of hex, base64, whpk for a public key", encoding)
	}
	return func(text string) (key publicKey, err error) {
		text = strings.TrimSpace(text)
		switch {
		case text == "":
			return key, errBlank
		case strings.HasPrefix(text, "-----BEGIN"):
			key, err = parsePEM([]byte(text))
		default:
			var b []byte
			if b, err = raw(text); err == nil {
				key, err = parseRaw(b, word)
			}
		}
		if err == nil && kindOf(key.public) != word {
			err = fmt.Errorf("is no %s key", word)
		}
		return key, err
	}, nil
}

// decodeWhpk reads a key as Standard Webhooks writes it: whpk_ for the public
// key, whsk_ for the private one.
func decodeWhpk(s string) ([]byte, error) {
	for _, prefix := range []string{"whpk_", "whsk_"} {
		if text, ok := strings.CutPrefix(s, prefix); ok {
			return decodeBase64(text)
		}
	}
	return nil, errors.New("begins neither with whpk_ nor with whsk_")
}

func parseRaw(b []byte, word string) (publicKey, error) {
	switch {
	case word == "ed25519" && len(b) == ed25519.PublicKeySize:
		return publicKey{public: ed25519.PublicKey(b)}, nil
	case word == "ed25519" && len(b) == ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
		return publicKey{private.Public(), private}, nil
	}
	public, err := x509.ParsePKIXPublicKey(b)
	if err != nil {
		return publicKey{}, errors.New("is no public key in DER")
	}
	return publicKey{public: public}, nil
}

func parsePEM(text []byte) (publicKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return publicKey{}, errors.New("is not one PEM block")
	}
	switch block.Type {
	case "PUBLIC KEY":
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err == nil {
			return publicKey{public: public}, nil
		}
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			return publicKey{public: cert.PublicKey}, nil
		}
	case "PRIVATE KEY":
		private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if signer, ok := private.(crypto.Signer); err == nil && ok {
			return publicKey{signer.Public(), signer}, nil
		}
	}
	return publicKey{}, errors.New("is no PUBLIC KEY, CERTIFICATE or PRIVATE KEY in PEM")
}

// kindOf names the scheme that a key belongs to. Keys too weak to prove
// anything belong to none.
func kindOf(key crypto.PublicKey) string {
	switch k := key.(type) {
	case ed25519.PublicKey:
		if !smallOrder(k) {
			return "ed25519"
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521() {
			return "ecdsa"
		}
	case *rsa.PublicKey:
		if k.N.BitLen() >= 2048 {
			return "rsa"
		}
	}
	return ""
}

// smallOrder reports whether a key is one of the few points whose multiples are a
// handful: all zeros, say, as it stands in many an example. Signatures of it can be
// made without a private key. Here one is made: that with the identity and the
// number 0 fits each message whose hash is a multiple of the order, 8 at most.
func smallOrder(key ed25519.PublicKey) bool {
	sig := make([]byte, ed25519.SignatureSize)
	sig[0] = 1
	for i := range byte(128) {
		if ed25519.Verify(key, []byte{i}, sig) {
			return true
		}
	}
	return false
}
