package oracle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/provider"
	"oncegate/verify"
)

const publicURL = "https://shop.example"

// A bench is a preset, ready to sign and to verify.
type bench struct {
	*provider.Preset
	secret   string
	public   string // the public key, as the SDK wants it
	verifier *verify.Verifier
	signer   *verify.Verifier
	params   map[string]string
}

func prepare(t *testing.T, name string) *bench {
	t.Helper()
	p, err := provider.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Preset: p, params: map[string]string{}}
	for param, about := range p.Params {
		b.params[param] = about.Example
	}
	o := verify.Options{PublicURL: publicURL, Params: b.params}
	if b.secret, err = verify.Generate(p.Verify); errors.Is(err, verify.ErrCannotSign) {
		b.fetched(t, o)
		return b
	}
	if err != nil {
		t.Fatal(err)
	}
	b.compile(t, o)
	return b
}

// compile makes the verifier, which holds the public key alone, and the signer.
func (b *bench) compile(t *testing.T, o verify.Options) {
	t.Helper()
	o.Secrets = secrets(b.secret)
	var err error
	if b.signer, err = verify.Compile(b.Verify, o); err != nil {
		t.Fatal(err)
	}
	held := b.secret
	if strings.HasPrefix(held, "-----BEGIN PRIVATE KEY") {
		held = b.publicKey(t)
	}
	o.Secrets = secrets(held)
	if b.verifier, err = verify.Compile(b.Verify, o); err != nil {
		t.Fatal(err)
	}
}

// publicKey returns the public part as a dashboard shows it.
func (b *bench) publicKey(t *testing.T) string {
	t.Helper()
	block, _ := pem.Decode([]byte(b.secret))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	switch k := key.(type) {
	case ed25519.PrivateKey:
		b.public = hex.EncodeToString(k.Public().(ed25519.PublicKey))
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalPKIXPublicKey(k.Public())
		if err != nil {
			t.Fatal(err)
		}
		b.public = base64.StdEncoding.EncodeToString(der)
	default:
		t.Fatalf("a key of type %T", key)
	}
	return b.public
}

// page answers every request for a key.
type page []byte

func (p page) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(p)), Request: r}, nil
}

// fetched prepares a scheme of RSA whose certificate is fetched.
func (b *bench) fetched(t *testing.T, o verify.Options) {
	t.Helper()
	spec := b.Verify[0]
	if len(spec.Any) > 0 {
		spec = spec.Any[0]
	}
	if spec.RSA == "" {
		return // a token: see signToken
	}
	key, cert := certificate(t)
	b.public = cert
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	o.Transport = page(cert)
	if b.verifier, err = verify.Compile(b.Verify, o); err != nil {
		t.Fatal(err)
	}
	spec.Keys = nil
	o.Secrets = secrets(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	if b.signer, err = verify.Compile([]verify.Spec{spec}, o); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T) (crypto.Signer, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func secrets(texts ...string) verify.Secrets { return func() ([]string, error) { return texts, nil } }

// sample is the preset's sample, signed now.
func (b *bench) sample(t *testing.T) *delivery.Delivery {
	t.Helper()
	d := b.Delivery("/hooks/" + b.Name)
	if b.Name == "linear" { // the SDK wants the moment of sending in the body
		d.Body = bytes.Replace(d.Body, []byte("1676056940508"), []byte(strconv.FormatInt(time.Now().UnixMilli(), 10)), 1)
	}
	d, err := b.signer.Complete(d, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ours asks oncegate.
func (b *bench) ours(d *delivery.Delivery) error { return b.verifier.Verify(context.Background(), d) }

func (b *bench) key(d *delivery.Delivery) string {
	if len(b.Key) == 0 {
		return ""
	}
	rules, err := keyextract.Compile(b.KeySpec())
	if err != nil {
		return ""
	}
	values, err := rules.Extract(keyextract.Parse(d))
	if err != nil {
		return ""
	}
	return strings.Join(values.Keys, " ")
}
