package oracle

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// tokenSDKs are the presets that are signed by a JSON Web Token, and whose
// reading of it oncegate is held against. Of a claim that holds the body's hash
// the library knows nothing: the oracle compares it, as the providers' pages say.
var tokenSDKs = map[string]string{"google-pubsub": "google-pubsub", "plaid": "plaid", "netlify": "netlify"}

// A tokenBench signs with a key of which oncegate and the SDK know the public
// part, or with the shared secret.
type tokenBench struct {
	*bench
	signer jose.Signer
	claims map[string]any
	now    time.Time
}

func prepareToken(t *testing.T, name string) *tokenBench {
	t.Helper()
	b := &tokenBench{bench: prepare(t, name), now: time.Now()}
	spec := b.Verify[0]
	var key any = []byte(b.secret)
	switch spec.JWT {
	case "RS256":
		var signer crypto.Signer
		signer, b.public = certificate(t)
		b.fetches(t, signer.Public())
		key = signer
	case "ES256":
		signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(signer.Public())
		if err != nil {
			t.Fatal(err)
		}
		b.public = base64.StdEncoding.EncodeToString(der)
		b.fetches(t, signer.Public())
		key = signer
	}
	var err error
	if b.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(spec.JWT), Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k1")); err != nil {
		t.Fatal(err)
	}
	body := sha256.Sum256(b.Delivery("/").Body)
	b.claims = map[string]map[string]any{
		"google-pubsub": {"iss": "https://accounts.google.com", "aud": b.params["audience"], "email": b.params["service_account"], "email_verified": true, "iat": b.now.Unix() - 10, "exp": b.now.Add(time.Hour).Unix()},
		"plaid":         {"iat": b.now.Unix(), "request_body_sha256": hex.EncodeToString(body[:])},
		"netlify":       {"iss": "netlify", "sha256": hex.EncodeToString(body[:])},
	}[name]
	return b
}

// fetches gives oncegate a set of keys, and an API, that answers with this one.
func (b *tokenBench) fetches(t *testing.T, public crypto.PublicKey) {
	t.Helper()
	key := jose.JSONWebKey{Key: public, KeyID: "k1"}
	answer, err := json.Marshal(map[string]any{"keys": []any{key}, "key": key})
	if err != nil {
		t.Fatal(err)
	}
	o := verify.Options{Params: b.params, Transport: page(answer), Secrets: secrets("api-secret")}
	if b.verifier, err = verify.Compile(b.Verify, o); err != nil {
		t.Fatal(err)
	}
}

// deliver makes the sample under a token that claims otherwise in these.
func (b *tokenBench) deliver(t *testing.T, change map[string]any) *delivery.Delivery {
	t.Helper()
	claims := maps.Clone(b.claims)
	maps.Copy(claims, change)
	token, err := jwt.Signed(b.signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	d := b.Delivery("/hooks/" + b.Name)
	d.Arrived = b.now
	if d.Header.Set(b.Verify[0].Header[0], token); b.Name == "google-pubsub" {
		d.Header.Set("Authorization", "Bearer "+token)
	}
	return d
}

// TestTokens: oncegate and the library judge tokens alike, also with each bit of
// token and body changed.
func TestTokens(t *testing.T) {
	n := startNode(t)
	for name, oracle := range tokenSDKs {
		t.Run(name, func(t *testing.T) {
			b := prepareToken(t, name)
			agreeOn(t, b.bench, b.deliver(t, nil), tokenDifferences[name], n.verifier(oracle))
		})
	}
	hour := time.Hour
	for name, c := range map[string]struct {
		preset string
		change map[string]any
	}{
		"another audience":     {"google-pubsub", map[string]any{"aud": "https://other.example"}},
		"another issuer":       {"google-pubsub", map[string]any{"iss": "https://evil.example"}},
		"another sender":       {"google-pubsub", map[string]any{"email": "x@example.test"}},
		"expired":              {"google-pubsub", map[string]any{"iat": time.Now().Add(-2 * hour).Unix(), "exp": time.Now().Add(-hour).Unix()}},
		"of an hour ago":       {"plaid", map[string]any{"iat": time.Now().Add(-hour).Unix()}},
		"of another body":      {"plaid", map[string]any{"request_body_sha256": hex.EncodeToString(make([]byte, 32))}},
		"of another site":      {"netlify", map[string]any{"iss": "evil"}},
		"of another body, too": {"netlify", map[string]any{"sha256": hex.EncodeToString(make([]byte, 32))}},
	} {
		t.Run(c.preset+" "+name, func(t *testing.T) {
			b := prepareToken(t, c.preset)
			d := b.deliver(t, c.change)
			if b.ours(d) == nil {
				t.Error("oncegate accepts it")
			}
			if n.verifier(tokenSDKs[c.preset])(t, b.bench, []*delivery.Delivery{d})[0] {
				t.Error("the library accepts it")
			}
		})
	}
}
