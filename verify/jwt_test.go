package verify

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func makeToken(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestToken(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1", Algorithm: "RS256", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://www.googleapis.com/oauth2/v3/certs"
	spec := Spec{JWT: "RS256", Header: []string{"Authorization"}, Format: "Bearer {jwt}",
		Keys:   &Keys{URL: url, Hosts: []string{"www.googleapis.com"}},
		Claims: &Claims{Issuer: []string{"https://accounts.google.com"}, Audience: []string{"{param:audience}"}, Equals: map[string]string{"email": "{param:email}", "email_verified": "true"}}}
	params := map[string]string{"audience": "shop", "email": "push@example.test"}
	v := mustCompile(t, spec, Options{Transport: &web{pages: map[string]string{url: string(set)}}, Params: params})
	good := func(change func(map[string]any)) map[string]any {
		c := map[string]any{"iss": "https://accounts.google.com", "aud": "shop", "email": "push@example.test", "email_verified": true, "iat": arrived.Unix(), "exp": arrived.Add(time.Hour).Unix()}
		if change != nil {
			change(c)
		}
		return c
	}
	for _, c := range []struct{ name, header, want string }{
		{"good", "Bearer " + makeToken(t, "RS256", key, "k1", good(nil)), "ok"},
		{"another audience", "Bearer " + makeToken(t, "RS256", key, "k1", good(func(c map[string]any) { c["aud"] = "other" })), "mismatch"},
		{"another sender", "Bearer " + makeToken(t, "RS256", key, "k1", good(func(c map[string]any) { c["email"] = "x" })), "mismatch"},
		{"another issuer", "Bearer " + makeToken(t, "RS256", key, "k1", good(func(c map[string]any) { c["iss"] = "x" })), "mismatch"},
		{"expired", "Bearer " + makeToken(t, "RS256", key, "k1", good(func(c map[string]any) { c["exp"] = arrived.Add(-time.Hour).Unix() })), "stale"},
		{"without end", "Bearer " + makeToken(t, "RS256", key, "k1", good(func(c map[string]any) { delete(c, "exp") })), "stale"},
		{"unknown key", "Bearer " + makeToken(t, "RS256", key, "k2", good(nil)), "mismatch"},
		{"public key as a secret", "Bearer " + makeToken(t, "HS256", publicDER(t, key), "k1", good(nil)), "malformed"},
		{"no algorithm", "Bearer eyJhbGciOiJub25lIn0.e30.", "malformed"},
		{"no token", "Bearer x", "malformed"},
		{"other scheme", "Basic x", "malformed"},
		{"nothing", "", "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outcome(t, v.Verify(context.Background(), post("{}", "Authorization", c.header))); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	t.Run("audience is needed", func(t *testing.T) {
		s := spec
		s.Claims = &Claims{Issuer: []string{"x"}}
		if _, err := Compile([]Spec{s}, Options{}); err == nil {
			t.Error("compiled")
		}
	})
}

func TestTokenOverBody(t *testing.T) {
	spec := Spec{JWT: "HS256", Header: []string{"X-Webhook-Signature"}, Claims: &Claims{Issuer: []string{"netlify"}, BodySHA256: "sha256", Timeless: true}}
	v := mustCompile(t, spec, Options{Secrets: secrets("0123456789abcdef0123456789abcdef")})
	d, err := v.Complete(post("{}"), arrived)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(context.Background(), d); err != nil {
		t.Error(err)
	}
	d.Body = []byte("{ }")
	if got := outcome(t, v.Verify(context.Background(), d)); got != "mismatch" {
		t.Error(got)
	}
}

// People choose short secrets, and providers sign with them.
func TestTokenOfShortSecret(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	sum := sha256.Sum256([]byte("{}"))
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(`{"iss":"netlify","sha256":"`+hex.EncodeToString(sum[:])+`"}`))
	mac := hmac.New(sha256.New, []byte("hunter2"))
	mac.Write([]byte(text))
	text += "." + encode(mac.Sum(nil))
	spec := Spec{JWT: "HS256", Header: []string{"X-Webhook-Signature"}, Claims: &Claims{Issuer: []string{"netlify"}, BodySHA256: "sha256", Timeless: true}}
	for secret, want := range map[string]string{"hunter2": "ok", "hunter": "mismatch", "hunter22": "mismatch"} {
		v := mustCompile(t, spec, Options{Secrets: secrets(secret)})
		if got := outcome(t, v.Verify(context.Background(), post("{}", "X-Webhook-Signature", text))); got != want {
			t.Errorf("B18 with the secret %q: %s", secret, got)
		}
		if d, err := v.Complete(post("{}"), arrived); err != nil || v.Verify(context.Background(), d) != nil {
			t.Errorf("what %q signs is not accepted: %v", secret, err)
		}
	}
	for _, secret := range []string{"", " "} {
		if _, err := Compile([]Spec{spec}, Options{Secrets: secrets(secret)}); err == nil {
			t.Errorf("B18 a blank secret %q", secret)
		}
	}
}

func TestKeyFromAPI(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(map[string]any{"key": jose.JSONWebKey{Key: key.Public(), KeyID: "k1", Algorithm: "ES256"}})
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://production.plaid.com/webhook_verification_key/get"
	w := &web{pages: map[string]string{url: string(answer)}}
	spec := Spec{JWT: "ES256", Header: []string{"Plaid-Verification"}, Claims: &Claims{BodySHA256: "request_body_sha256", MaxAge: 5 * time.Minute},
		Keys: &Keys{URL: url, Hosts: []string{"production.plaid.com"}, Post: map[string]string{"client_id": "{param:client_id}", "secret": "{secret}", "key_id": "{kid}"}}}
	v := mustCompile(t, spec, Options{Transport: w, Params: map[string]string{"client_id": "c1"}, Secrets: secrets("api-secret")})
	sum := sha256.Sum256([]byte("{}"))
	text := makeToken(t, "ES256", key, "k1", map[string]any{"iat": arrived.Unix(), "request_body_sha256": hex.EncodeToString(sum[:])})
	for range 2 {
		if err := v.Verify(context.Background(), post("{}", "Plaid-Verification", text)); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.posts) != 1 || w.posts[0] != `{"client_id":"c1","key_id":"k1","secret":"api-secret"}` {
		t.Errorf("asked %q", w.posts)
	}
	d := post("{}", "Plaid-Verification", text)
	d.Arrived = arrived.Add(6 * time.Minute)
	if got := outcome(t, v.Verify(context.Background(), d)); got != "stale" {
		t.Error(got)
	}
}
