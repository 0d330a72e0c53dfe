package verify

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
)

// publicPEM is the public part of a private key in PEM.
func publicPEM(t *testing.T, key string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(key))
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.(*rsa.PrivateKey).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestTestKey(t *testing.T) {
	fetched := []Spec{{Any: []Spec{
		{RSA: "sha256", Header: []string{"X-Sig"}, Format: "{base64}", Keys: &Keys{Certificate: "header:X-Cert", Hosts: []string{"keys.example.com"}}},
		{RSA: "sha1", Header: []string{"X-Sig1"}, Format: "{base64}", Keys: &Keys{Certificate: "header:X-Cert", Hosts: []string{"keys.example.com"}}},
	}}}
	key, err := NewTestKey(fetched)
	if err != nil {
		t.Fatal(err)
	}
	with, used := WithTestKey(fetched, key)
	if !used || fetched[0].Any[0].Keys == nil {
		t.Fatalf("used: %v, and the original was changed: %v", used, fetched[0].Any[0].Keys == nil)
	}
	holder, err := Compile(with, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := holder.Complete(post("{}"), arrived)
	if err != nil {
		t.Fatal(err)
	}
	d.Header.Set("X-Cert", "https://keys.example.com/a.pem")
	public, _ := WithTestKey(fetched, publicPEM(t, key))
	other, err := NewTestKey(fetched)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := WithTestKey(fetched, other)
	for name, c := range map[string]struct {
		specs []Spec
		want  bool
	}{"the private key": {with, true}, "its public part": {public, true}, "another key": {stranger, false}, "the provider's own": {fetched, false}} {
		t.Run(name, func(t *testing.T) {
			v, err := Compile(c.specs, Options{Transport: nobody{}})
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Verify(context.Background(), d); (err == nil) != c.want {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("the public part can't sign, and with the private one it can", func(t *testing.T) {
		v, err := Compile(public, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Complete(post("{}"), arrived); !errors.Is(err, ErrCannotSign) {
			t.Errorf("%v", err)
		}
		signer, err := v.Signing(key)
		if err != nil {
			t.Fatal(err)
		}
		d, err := signer.Complete(post("{}"), arrived)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(context.Background(), d); err != nil {
			t.Error(err)
		}
	})
	t.Run("none is used where none is fetched", func(t *testing.T) {
		if _, used := WithTestKey([]Spec{hub()}, key); used {
			t.Error("used")
		}
		if _, err := NewTestKey([]Spec{hub()}); !errors.Is(err, ErrCannotSign) {
			t.Errorf("%v", err)
		}
	})
	t.Run("B18 what is no key compiles to nothing", func(t *testing.T) {
		for _, text := range []string{"", "secret", strings.Replace(key, "PRIVATE", "PUBLIC", 2)} {
			with, _ := WithTestKey(fetched, text)
			if _, err := Compile(with, Options{}); err == nil {
				t.Errorf("%.20q compiles", text)
			}
		}
	})
}
