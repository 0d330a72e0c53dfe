package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// TestVectors holds presets against signatures that others made and published.
// Where they come from stands with each.
func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.preset, func(t *testing.T) {
			verifier, d := v.verifier(t), v.delivery()
			if err := verifier.Verify(context.Background(), d); err != nil {
				t.Fatalf("%s: %v", v.from, err)
			}
			// Each byte of the body, unless the provider doesn't sign them all.
			refused := 0
			for i := range d.Body {
				c := *d
				c.Body = append([]byte(nil), d.Body...)
				if c.Body[i] ^= 1; verifier.Verify(context.Background(), &c) != nil {
					refused++
				}
			}
			if p := v.preset; refused < len(d.Body) && p != "midtrans" || refused == 0 {
				t.Errorf("of %d changed bodies %d are refused", len(d.Body), refused)
			}
		})
	}
}

// TestVectorsAreNamed: a preset says that it was held against a published
// signature where there is one here, and nowhere else.
func TestVectorsAreNamed(t *testing.T) {
	for _, p := range all(t) {
		here := slices.ContainsFunc(vectors, func(v vector) bool { return v.preset == p.Name })
		if p.Name == "payfast" { // package verify has the vector, which is of the fields alone
			here = true
		}
		if says := strings.Contains(p.Oracle, "vector"); says != here {
			t.Errorf("%s: the preset says %q, and there is a vector: %v", p.Name, p.Oracle, here)
		}
	}
}

func (v *vector) verifier(t *testing.T) *verify.Verifier {
	t.Helper()
	p, err := Get(v.preset)
	if err != nil {
		t.Fatal(err)
	}
	o := verify.Options{PublicURL: "https://example.test", Params: v.params}
	if v.secret != "" {
		o.Secrets = secrets(v.secret)
	}
	if v.key != "" {
		o.Transport = &keyServer{v.certificate(t)}
	}
	if v.change != nil {
		v.change(&p.Verify[0])
	}
	verifier, err := verify.Compile(p.Verify, o)
	if err != nil {
		t.Fatal(err)
	}
	return verifier
}

// certificate makes one for the vector's key, which somebody else signs.
func (v *vector) certificate(t *testing.T) []byte {
	t.Helper()
	modulus, err := base64.StdEncoding.DecodeString(v.key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: v.at.Add(-time.Hour), NotAfter: v.at.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: 65537}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (v *vector) delivery() *delivery.Delivery {
	d := &delivery.Delivery{
		Method: "POST", Target: cmp.Or(v.target, "/"), Body: []byte(v.body), Arrived: cmp.Or(v.at, now),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
	for name, value := range v.header {
		d.Header.Set(name, value)
	}
	return d
}
