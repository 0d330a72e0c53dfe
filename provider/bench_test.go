package provider

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/verify"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// A bench is one preset, compiled, with a signer for it.
type bench struct {
	*Preset
	verifier *verify.Verifier
	rules    *keyextract.Rules
	secret   string
	// sign completes the delivery as the provider would at that moment.
	sign func(t *testing.T, d *delivery.Delivery, at time.Time) *delivery.Delivery
}

// onBench compiles a preset as a route would.
func onBench(t *testing.T, p *Preset) *bench {
	t.Helper()
	b := &bench{Preset: p}
	var err error
	if len(p.Key)+len(p.Tags) > 0 {
		if b.rules, err = keyextract.Compile(p.KeySpec()); err != nil {
			t.Fatalf("key: %v", err)
		}
	}
	if verify.Unverified(p.Verify) {
		return b
	}
	o := verify.Options{PublicURL: "https://shop.example", Params: map[string]string{}}
	for name, param := range p.Params {
		o.Params[name] = param.Example
	}
	keys := &keyServer{}
	o.Transport = keys
	if b.secret, err = verify.Generate(p.Verify); err == nil {
		b.sign = func(t *testing.T, d *delivery.Delivery, at time.Time) *delivery.Delivery {
			t.Helper()
			done, err := b.verifier.Complete(d, at)
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
	} else {
		b.secret = "api-secret"
		b.sign = keys.signer(t, p, o)
	}
	if p.Name != "amazon-sns" { // its keys are fetched without credentials
		o.Secrets = secrets(b.secret)
	}
	if b.verifier, err = verify.Compile(p.Verify, o); err != nil {
		t.Fatalf("verify: %v", err)
	}
	return b
}

func secrets(texts ...string) verify.Secrets { return func() ([]string, error) { return texts, nil } }

func (b *bench) sample(body string) *delivery.Delivery {
	d := b.Delivery("/" + b.Name)
	if body != "" {
		d.Body = []byte(body)
	}
	return d
}

// key is the event's key, or "" where there is none.
func (b *bench) key(d *delivery.Delivery) string {
	if len(b.Key) == 0 {
		return ""
	}
	values, err := b.rules.Extract(keyextract.Parse(d))
	if err != nil {
		return ""
	}
	return strings.Join(values.Keys, " ")
}

// keyServer stands in for the hosts that keys are fetched from, and signs with
// the keys it gives out.
type keyServer struct{ page []byte }

func (k *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(k.page)), Request: r}, nil
}

func (k *keyServer) signer(t *testing.T, p *Preset, o verify.Options) func(*testing.T, *delivery.Delivery, time.Time) *delivery.Delivery {
	t.Helper()
	spec := p.Verify[0]
	if len(spec.Any) > 0 {
		spec = spec.Any[0]
	}
	if spec.JWT != "" {
		return k.tokenSigner(t, spec, o)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	k.page = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	spec.Keys = nil
	o.Secrets = secrets(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	v, err := verify.Compile([]verify.Spec{spec}, o)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, d *delivery.Delivery, at time.Time) *delivery.Delivery {
		t.Helper()
		done, err := v.Complete(d, at)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
}

func (k *keyServer) tokenSigner(t *testing.T, spec verify.Spec, o verify.Options) func(*testing.T, *delivery.Delivery, time.Time) *delivery.Delivery {
	t.Helper()
	var key crypto.Signer
	var err error
	if spec.JWT == "ES256" {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	jwk := jose.JSONWebKey{Key: key.Public(), KeyID: "k1"}
	if k.page, err = json.Marshal(map[string]any{"key": jwk, "keys": []any{jwk}}); err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(spec.JWT), Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, d *delivery.Delivery, at time.Time) *delivery.Delivery {
		t.Helper()
		sum := sha256.Sum256(d.Body)
		claims := map[string]any{
			"iat": at.Unix(), "exp": at.Add(time.Hour).Unix(), "iss": "https://accounts.google.com",
			"aud": o.Params["audience"], "email": o.Params["service_account"], "email_verified": true,
			"request_body_sha256": hex.EncodeToString(sum[:]),
		}
		text, err := jwt.Signed(signer).Claims(claims).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		c := *d
		c.Header = maps.Clone(d.Header)
		c.Header.Set(spec.Header[0], strings.Replace(spec.Format+"{jwt}", "{jwt}", text, 1))
		c.Header.Set(spec.Header[0], strings.TrimSuffix(c.Header.Get(spec.Header[0]), "{jwt}"))
		c.Arrived = at
		return &c
	}
}
