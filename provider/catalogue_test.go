package provider

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/keyextract"
	"oncegate/verify"
)

// whole reports whether every byte of the body is signed by what verifies it.
func whole(specs []verify.Spec) bool {
	for _, s := range specs {
		switch {
		case len(s.Any) > 0:
			for _, alt := range s.Any {
				if !whole([]verify.Spec{alt}) {
					return false
				}
			}
			return true
		case s.Claims != nil && s.Claims.BodySHA256 != "", s.BodyHash != nil:
			return true
		case s.HMAC+s.Hash+s.ECDSA+s.RSA != "" || s.Ed25519:
			return s.Signed == "" || strings.Contains(s.Signed, "{body}") || strings.Contains(s.Signed, "{crc32}")
		}
	}
	return false
}

func all(t *testing.T) []*Preset {
	t.Helper()
	presets, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return presets
}

// TestCatalogue holds every preset against what it says of itself.
func TestCatalogue(t *testing.T) {
	presets := all(t)
	if len(presets) < 60 {
		t.Errorf("%d presets", len(presets))
	}
	for _, p := range presets {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			b := onBench(t, p)
			t.Run("key", b.testKey)
			if b.verifier == nil {
				return
			}
			t.Run("signs and verifies", b.testSigns)
			t.Run("B18 fails closed", b.testFailsClosed)
			t.Run("B19 both secrets", b.testRotation)
			t.Run("B20 out of time", b.testTime)
			t.Run("mutated body", b.testMutatedBody)
			t.Run("mutated headers", b.testMutatedHeaders)
		})
	}
}

func (b *bench) testKey(t *testing.T) {
	d := b.sample("")
	key := b.key(d)
	if b.Sample.Key != "" && key != b.Sample.Key {
		t.Errorf("key %q, want %q", key, b.Sample.Key)
	}
	if b.Mode == "enforce" && key == "" {
		_, err := b.rules.Extract(keyextract.Parse(d))
		t.Errorf("enforced, and the sample has no key: %v", err)
	}
	if b.Sample.Retry != "" && b.key(b.sample(b.Sample.Retry)) != key {
		t.Error("the retry has another key")
	}
	t.Run("B01 nothing to find", func(t *testing.T) {
		for _, body := range []string{"{}", "[]", "", `[{}]`, `{"id":null}`} {
			empty := b.sample("")
			empty.Target, empty.Body = "/", []byte(body)
			empty.Header = http.Header{"Content-Type": {"application/json"}}
			if key := b.key(empty); key != "" && !slices.ContainsFunc(b.Key, func(p keyextract.Part) bool { return p.Digest != "" }) {
				t.Errorf("body %q has the key %q", body, key)
			}
		}
	})
}

func (b *bench) testSigns(t *testing.T) {
	first := b.sign(t, b.sample(""), now)
	if err := b.verifier.Verify(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	if err := b.verifier.Plausible(first.Header); err != nil {
		t.Errorf("Plausible: %v", err)
	}
	// A retry is signed anew, an hour later, and is the same event.
	again := b.sign(t, b.sample(b.Sample.Retry), now.Add(time.Hour))
	if err := b.verifier.Verify(context.Background(), again); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	if b.StableRetries == "yes" && b.key(again) != b.key(first) && !slices.ContainsFunc(b.Key, func(p keyextract.Part) bool { return p.Digest != "" }) {
		t.Errorf("an hour later the key is %q, before %q", b.key(again), b.key(first))
	}
	t.Run("redirected", func(t *testing.T) {
		if spec := b.Verify[0]; strings.Contains(spec.Signed, "{url}") {
			elsewhere := *first
			elsewhere.Target = "/elsewhere"
			if b.verifier.Verify(context.Background(), &elsewhere) == nil {
				t.Error("the URL is signed, and another one is accepted")
			}
		}
	})
}

func (b *bench) testFailsClosed(t *testing.T) {
	unsigned := b.sample("")
	unsigned.Arrived = now
	if err := b.verifier.Verify(context.Background(), unsigned); err == nil {
		t.Error("an unsigned delivery is accepted")
	}
	for _, s := range []string{"", "  "} {
		o := verify.Options{PublicURL: "https://shop.example", Secrets: secrets(s), Params: map[string]string{}}
		for name, param := range b.Params {
			o.Params[name] = param.Example
		}
		if b.secret == "api-secret" {
			continue // keys are fetched
		}
		if _, err := verify.Compile(b.Verify, o); err == nil {
			t.Errorf("the secret %q compiles", s)
		}
	}
	if len(b.Params) > 0 {
		if _, err := verify.Compile(b.Verify, verify.Options{Secrets: secrets(b.secret)}); err == nil && b.Name != "plaid" {
			t.Error("compiles without its parameters")
		}
	}
}

func (b *bench) testRotation(t *testing.T) {
	if b.secret == "api-secret" {
		return
	}
	other, err := verify.Generate(b.Verify)
	if err != nil {
		t.Fatal(err)
	}
	d := b.sign(t, b.sample(""), now)
	for name, c := range map[string]struct {
		texts []string
		want  bool
	}{"new and old": {[]string{other, b.secret}, true}, "new alone": {[]string{other}, false}} {
		v, err := verify.Compile(b.Verify, verify.Options{PublicURL: "https://shop.example", Secrets: secrets(c.texts...)})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(context.Background(), d); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (b *bench) testTime(t *testing.T) {
	if !b.verifier.Judges() {
		return
	}
	d := b.sign(t, b.sample(""), now)
	for _, late := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		c := *d
		c.Arrived = now.Add(late)
		err := b.verifier.Verify(context.Background(), &c)
		if e, ok := errors.AsType[*verify.Error](err); b.Verify[0].JWT != "" && late < 0 && b.Verify[0].Claims.MaxAge == 0 {
			continue // a token is bounded by its end alone
		} else if !ok || e.Kind != verify.Stale {
			t.Errorf("%s off: %v", late, err)
		}
	}
}

// testMutatedBody changes every bit. What is accepted all the same was not
// signed, and must not be the key where the preset says that the key is signed.
func (b *bench) testMutatedBody(t *testing.T) {
	d := b.sign(t, b.sample(""), now)
	key := b.key(d)
	for i := range len(d.Body) * 8 {
		c := *d
		c.Body = slices.Clone(d.Body)
		c.Body[i/8] ^= 1 << (i % 8)
		if b.verifier.Verify(context.Background(), &c) != nil {
			continue
		}
		if whole(b.Verify) {
			t.Fatalf("bit %d of byte %d (%q): accepted", i%8, i/8, d.Body[i/8])
		}
		if got := b.key(&c); b.KeySigned && got != key && got != "" {
			t.Fatalf("bit %d of byte %d: accepted under the key %q", i%8, i/8, got)
		}
	}
}

// testMutatedHeaders does the same with the headers.
func (b *bench) testMutatedHeaders(t *testing.T) {
	d := b.sign(t, b.sample(""), now)
	key := b.key(d)
	for name, values := range d.Header {
		for i := range len(values[0]) * 8 {
			c := *d
			c.Header = d.Header.Clone()
			text := []byte(values[0])
			text[i/8] ^= 1 << (i % 8)
			c.Header.Set(name, string(text))
			if b.verifier.Verify(context.Background(), &c) != nil {
				continue
			}
			if signature(b.Verify, name) && !strings.EqualFold(string(text), values[0]) {
				t.Fatalf("%s with %q: accepted", name, text)
			}
			if got := b.key(&c); b.KeySigned && got != key && got != "" {
				t.Fatalf("%s with %q: accepted under the key %q", name, text, got)
			}
		}
	}
}

// signature reports whether the header carries a signature or its time.
func signature(specs []verify.Spec, name string) bool {
	for _, s := range specs {
		if signature(s.Any, name) || s.Time != nil && strings.EqualFold(s.Time.Header, name) {
			return true
		}
		for _, h := range s.Header {
			if prefix, wild := strings.CutSuffix(h, "*"); strings.EqualFold(h, name) || wild && strings.HasPrefix(name, http.CanonicalHeaderKey(prefix)) {
				return true
			}
		}
	}
	return false
}
