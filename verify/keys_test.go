package verify

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// web answers for hosts that don't exist here.
type web struct {
	pages map[string]string // by URL; a missing one is 404
	err   error
	asked []string
	posts []string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked = append(w.asked, r.URL.String())
	if r.Method == http.MethodPost {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		w.posts = append(w.posts, string(b))
	}
	if w.err != nil {
		return nil, w.err
	}
	status, body := 200, w.pages[r.URL.String()]
	header := http.Header{}
	if body == "" {
		status = 404
	}
	if to, ok := strings.CutPrefix(body, "redirect:"); ok {
		status = 302
		header.Set("Location", to)
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func privatePEM(t *testing.T, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pemOf(t, "PRIVATE KEY", der, err)
}

func publicDER(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func certificate(t *testing.T, key crypto.Signer) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns"}, NotBefore: arrived.Add(-time.Hour), NotAfter: arrived.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return pemOf(t, "CERTIFICATE", der, err)
}

func TestPublicKeys(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	base := Spec{Header: []string{"X-Sig"}, Format: "{base64}", Signed: "{header:X-Time}{body}"}
	for _, c := range []struct {
		name string
		set  func(*Spec)
		key  crypto.Signer
		raw  string
	}{
		{"ed25519 hex", func(s *Spec) { s.Ed25519, s.Encoding = true, "hex" }, ed, hex.EncodeToString(ed.Public().(ed25519.PublicKey))},
		{"ed25519 whpk", func(s *Spec) { s.Ed25519, s.Encoding = true, "whpk" }, ed, "whpk_" + base64.StdEncoding.EncodeToString(ed.Public().(ed25519.PublicKey))},
		{"ecdsa DER", func(s *Spec) { s.ECDSA = "sha256" }, ec, base64.StdEncoding.EncodeToString(publicDER(t, ec))},
		{"rsa PEM", func(s *Spec) { s.RSA = "sha256" }, rs, pemOf(t, "PUBLIC KEY", publicDER(t, rs), nil)},
		{"rsa certificate", func(s *Spec) { s.RSA = "sha1" }, rs, certificate(t, rs)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := base
			c.set(&s)
			signer := mustCompile(t, s, Options{Secrets: secrets(privatePEM(t, c.key))})
			d, err := signer.Complete(post("{}", "X-Time", "1"), arrived)
			if err != nil {
				t.Fatal(err)
			}
			v := mustCompile(t, s, Options{Secrets: secrets(c.raw)})
			if err := v.Verify(context.Background(), d); err != nil {
				t.Error(err)
			}
			if _, err := v.Sign(d, arrived); !errors.Is(err, ErrCannotSign) {
				t.Errorf("Sign with a public key: %v", err)
			}
			d.Header.Set("X-Time", "2")
			if got := outcome(t, v.Verify(context.Background(), d)); got != "mismatch" {
				t.Errorf("changed: %s", got)
			}
		})
	}
	t.Run("key of another kind", func(t *testing.T) {
		s := base
		s.Ed25519 = true
		if _, err := Compile([]Spec{s}, Options{Secrets: secrets(privatePEM(t, rs))}); err == nil {
			t.Error("compiled")
		}
	})
	t.Run("weak key", func(t *testing.T) {
		s := base
		s.RSA = "sha256"
		n := new(big.Int).SetBit(big.NewInt(1), 1023, 1)
		der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: 65537})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile([]Spec{s}, Options{Secrets: secrets(pemOf(t, "PUBLIC KEY", der, nil))}); err == nil {
			t.Error("compiled")
		}
	})
}

func sns() Spec {
	return Spec{RSA: "sha256", JSON: "/Signature", Format: "{base64}",
		Signed: "Message\n{json:/Message}\n[Subject\n{json:/Subject}\n]TopicArn\n{json:/TopicArn}\n",
		Keys:   &Keys{Certificate: "json:/SigningCertURL", Hosts: []string{"sns.*.amazonaws.com"}, Suffix: ".pem"}}
}

func TestCertificate(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://sns.eu-west-1.amazonaws.com/cert.pem"
	body := func(url, message string) string {
		sum := sha256.Sum256([]byte("Message\n" + message + "\nTopicArn\narn\n"))
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(map[string]string{"Message": message, "TopicArn": "arn", "SigningCertURL": url, "Signature": base64.StdEncoding.EncodeToString(sig)})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	w := &web{pages: map[string]string{url: certificate(t, key)}}
	v := mustCompile(t, sns(), Options{Transport: w})
	for range 3 {
		if err := v.Verify(context.Background(), post(body(url, "hello\nworld"))); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("fetched %d times, want once", len(w.asked))
	}
	t.Run("changed", func(t *testing.T) {
		changed := strings.Replace(body(url, "hello"), "hello", "hullo", 1)
		if got := outcome(t, v.Verify(context.Background(), post(changed))); got != "mismatch" {
			t.Error(got)
		}
	})
	t.Run("an absent member that appears", func(t *testing.T) {
		changed := strings.Replace(body(url, "hello"), `{`, `{"Subject":"x",`, 1)
		if got := outcome(t, v.Verify(context.Background(), post(changed))); got != "mismatch" {
			t.Error(got)
		}
	})
	t.Run("B04 a member that stands twice", func(t *testing.T) {
		changed := strings.Replace(body(url, "hello"), `{`, `{"Message":"x",`, 1)
		if got := outcome(t, v.Verify(context.Background(), post(changed))); got != "malformed" {
			t.Error(got)
		}
	})
	t.Run("certificate out of date", func(t *testing.T) {
		d := post(body(url, "hello"))
		d.Arrived = arrived.Add(2 * time.Hour)
		if got := outcome(t, v.Verify(context.Background(), d)); got != "mismatch" {
			t.Error(got)
		}
	})
	// Nothing is fetched from where it shouldn't be, whoever asks.
	for _, bad := range []string{
		"http://sns.eu-west-1.amazonaws.com/cert.pem", "https://evil.example/cert.pem",
		"https://sns.eu-west-1.amazonaws.com.evil.example/cert.pem", "https://sns.eu-west-1.amazonaws.com@evil.example/cert.pem",
		"https://evil.example/sns.eu-west-1.amazonaws.com/cert.pem", "https://sns.evil.example#.amazonaws.com/cert.pem",
		"https://sns.eu-west-1.amazonaws.com:8443/cert.pem", "https://sns.eu-west-1.amazonaws.com/cert.key",
		"https://sns.eu-west-1.amazonaws.com/a/../cert.pem", "https://sns.eu-west-1.amazonaws.com/cert.pem?x=.pem",
		"https://sns.a.b.amazonaws.com/cert.pem", "https://s3.amazonaws.com/cert.pem", "https://127.0.0.1/cert.pem",
		"https://[::1]/cert.pem", "file:///etc/cert.pem", "https://sns..amazonaws.com/cert.pem", "//sns.eu-west-1.amazonaws.com/cert.pem",
		"https://sns.eu-west-1.amazonaws.com\\@evil.example/cert.pem", "https://sns.eu-west-1.amazonaws.com%2f.evil.example/cert.pem",
	} {
		t.Run("not fetched "+bad, func(t *testing.T) {
			before := len(w.asked)
			if got := outcome(t, v.Verify(context.Background(), post(body(bad, "hello")))); got != "malformed" {
				t.Errorf("%s, want malformed", got)
			}
			if len(w.asked) != before {
				t.Errorf("asked %v", w.asked[before:])
			}
		})
	}
	t.Run("no redirect is followed", func(t *testing.T) {
		const moved = "https://sns.us-east-1.amazonaws.com/moved.pem"
		w.pages[moved] = "redirect:" + url
		before := len(w.asked)
		if got := outcome(t, v.Verify(context.Background(), post(body(moved, "hello")))); got != "unavailable" {
			t.Error(got)
		}
		if len(w.asked) != before+1 {
			t.Errorf("asked %v", w.asked[before:])
		}
	})
	t.Run("no more than 256 KiB", func(t *testing.T) {
		const huge = "https://sns.us-east-1.amazonaws.com/huge.pem"
		w.pages[huge] = strings.Repeat("x", maxKeyBytes+1)
		if got := outcome(t, v.Verify(context.Background(), post(body(huge, "hello")))); got != "unavailable" {
			t.Error(got)
		}
	})
}

func TestPrivateAddresses(t *testing.T) {
	for address, public := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "192.168.1.1:443": false, "172.16.0.1:443": false, "169.254.169.254:443": false,
		"100.64.0.1:443": false, "0.0.0.0:443": false, "[::1]:443": false, "[::ffff:127.0.0.1]:443": false, "[fd00::1]:443": false, "[fe80::1]:443": false,
		"224.0.0.1:443": false, "255.255.255.255:443": false,
	} {
		if err := publicOnly("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	t.Run("a pinned host that resolves to this machine", func(t *testing.T) {
		f := newFetcher(nil)
		if _, err := f.get(context.Background(), question{url: "https://localhost:1/"}, false); !errors.Is(err, errPrivate) {
			t.Errorf("%v, want errPrivate", err)
		}
	})
}

func TestFetcherCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := question{url: "https://keys.example/set"}
		w := &web{pages: map[string]string{q.url: "one"}}
		f := newFetcher(w)
		get := func(newer bool, want string, asked int) {
			t.Helper()
			body, err := f.get(context.Background(), q, newer)
			if string(body) != want || (err == nil) != (want != "") || len(w.asked) != asked {
				t.Errorf("got %q, %v after %d questions; want %q after %d", body, err, len(w.asked), want, asked)
			}
		}
		get(false, "one", 1)
		get(true, "one", 1) // not anew within a minute
		time.Sleep(refreshAtLeast)
		w.pages[q.url] = "two"
		get(false, "one", 1)
		get(true, "two", 2)
		w.err = errors.New("down")
		time.Sleep(freshFor)
		get(false, "two", 3) // an outage doesn't take away a key that was good
		get(false, "two", 3)
		time.Sleep(failedFor)
		get(false, "two", 4)
		time.Sleep(staleFor)
		get(false, "", 5)
		get(false, "", 5) // a failure is remembered for a moment
		time.Sleep(failedFor)
		w.err = nil
		get(false, "two", 6)
	})
}

func TestFetcherAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		f := newFetcher(roundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			time.Sleep(time.Second)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("key")), Request: r}, nil
		}))
		done := make(chan error)
		for range 20 {
			go func() {
				_, err := f.get(context.Background(), question{url: "https://keys.example/"}, false)
				done <- err
			}()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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
