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
	"testing"
	"time"
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
			if _, err := v.Sign(d, arrived); !errors.Is(err, ErrCannotSign) || v.CanSign() || !signer.CanSign() {
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
		Keys:   &Keys{Certificate: "json:/SigningCertURL", Hosts: []string{"sns.*.amazonaws.com"}, Prefix: "/c", Suffix: ".pem"}}
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
		"https://sns.eu-west-1.amazonaws.com:8443/cert.pem", "https://sns.eu-west-1.amazonaws.com/cert.key", "https://sns.eu-west-1.amazonaws.com/other/cert.pem",
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
		const moved = "https://sns.us-east-1.amazonaws.com/c/moved.pem"
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
		const huge = "https://sns.us-east-1.amazonaws.com/c/huge.pem"
		w.pages[huge] = strings.Repeat("x", maxKeyBytes+1)
		if got := outcome(t, v.Verify(context.Background(), post(body(huge, "hello")))); got != "unavailable" {
			t.Error(got)
		}
	})
}
