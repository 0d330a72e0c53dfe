package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
)

// Generate makes a secret that suits the specs, for a demonstration or a test:
// random bytes in the encoding of the first scheme that takes a secret, or a
// private key in PEM where it checks with a public one. Where none takes one it
// is ErrCannotSign.
func Generate(specs []Spec) (string, error) {
	for i := range specs {
		s := &specs[i]
		if len(s.Any) > 0 {
			s = &s.Any[0]
		}
		if len(s.Secrets) == 0 && len(s.IPs) == 0 && s.HTTP == "" && !s.None {
			return s.generate()
		}
	}
	return "", ErrCannotSign
}

func (s *Spec) generate() (string, error) {
	var signer crypto.Signer
	var err error
	switch {
	case s.Keys != nil:
		return "", ErrCannotSign
	case s.Ed25519:
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	case s.ECDSA != "", s.JWT == "ES256":
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case s.RSA != "", s.JWT == "RS256":
		signer, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return s.generateText(), nil
	}
	if err != nil {
		return "", fmt.Errorf("verify: making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return "", fmt.Errorf("verify: making a key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

func (s *Spec) generateText() string {
	b := make([]byte, sha256.Size)
	rand.Read(b)
	switch {
	case s.Basic:
		return "oncegate:" + hex.EncodeToString(b)
	case s.Encoding == "whsec":
		return "whsec_" + base64.StdEncoding.EncodeToString(b)
	case s.Encoding == "base64":
		return base64.StdEncoding.EncodeToString(b)
	}
	return hex.EncodeToString(b)
}
