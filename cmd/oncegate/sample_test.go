package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/provider"
	"oncegate/verify"
)

// sampleRoute is a route of a preset, with a secret that suits it, and with a test
// key where the provider's own would be fetched.
func sampleRoute(t *testing.T, p *provider.Preset, testKey bool) *config.Route {
	t.Helper()
	text := "version: 1\nupstream: http://127.0.0.1:1\nstate_dir: " + t.TempDir() + "\npublic_url: https://shop.example\nroutes:\n  shop:\n    path: /hook\n    provider: " + p.Name + "\n"
	if secret, err := verify.Generate(p.Verify); err == nil {
		text += fmt.Sprintf("    secrets: %q\n", secret)
	} else if p.Name == "plaid" {
		text += "    secrets: of-the-api\n"
	}
	key, err := verify.NewTestKey(p.Verify)
	if _, fetched := verify.WithTestKey(p.Verify, key); err == nil && fetched && testKey {
		text += fmt.Sprintf("    test_key: %q\n", key)
	}
	if p.CallerRequired {
		text += "    caller: {header: Authorization}\n"
	}
	if len(p.Params) > 0 {
		text += "    params:\n"
	}
	for _, name := range sortedKeys(p.Params) {
		text += fmt.Sprintf("      %s: %q\n", name, p.Params[name].Example)
	}
	file := filepath.Join(t.TempDir(), "oncegate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	return c.Routes[0]
}

// Every preset's sample becomes another event each time, and what is signed (with a
// test key where nobody else can) passes the route's own verification, retries too.
func TestSamples(t *testing.T) {
	presets, err := provider.All()
	if err != nil {
		t.Fatal(err)
	}
	target := &url.URL{Scheme: "http", Host: "shop.example", Path: "/hook"}
	var unsignable []string
	for _, p := range presets {
		t.Run(p.Name, func(t *testing.T) {
			if sampler, err := newSampler(sampleRoute(t, p, false), target, ""); err != nil {
				t.Fatal(err)
			} else if _, err := sampler.signed(0, time.Now()); errors.Is(err, verify.ErrCannotSign) {
				unsignable = append(unsignable, p.Name)
			}
			route := sampleRoute(t, p, true)
			one, err := newSampler(route, target, "")
			if err != nil {
				t.Fatal(err)
			}
			other, err := newSampler(route, target, "")
			if err != nil {
				t.Fatal(err)
			}
			if string(one.first.Body)+one.first.Target+fmt.Sprint(one.first.Header) == string(other.first.Body)+other.first.Target+fmt.Sprint(other.first.Header) {
				t.Error("two events are the same delivery")
			}
			if len(p.Key) > 0 && (one.key == other.key || one.key == "") {
				t.Errorf("two events have one key: %q", one.key)
			}
			for n := range 2 {
				d, err := one.signed(n, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				if route.Verifier != nil {
					if err := route.Verifier.Verify(t.Context(), d); err != nil {
						t.Errorf("delivery %d: %v", n, err)
					}
				}
				if key, err := one.keyOf(d); err != nil || key != one.key {
					t.Errorf("delivery %d: key %q, want %q (%v)", n, key, one.key, err)
				}
			}
		})
	}
	if want := []string{"amazon-sns", "google-pubsub", "paypal", "plaid"}; !slices.Equal(unsignable, want) {
		t.Errorf("can't be signed without a test key: %v, want %v", unsignable, want)
	}
}

func TestRenaming(t *testing.T) {
	for _, c := range []struct {
		sample         provider.Sample
		key, id        string
		from, to, want string
	}{
		{provider.Sample{}, "acct/evt_1", "evt_2", "evt_1", "evt_2", ""},
		{provider.Sample{}, "#12", "x", "", "", "IDs are numbers"},
		{provider.Sample{}, "a", `"`, "", "", "without quotes"},
		{provider.Sample{Rename: "uuid"}, "sha256-00", "other", "uuid", "other", ""},
		{provider.Sample{Rename: "abc", RenameBase64: true}, "k", "xyz123", "YWJj", "eHl6MTIz", ""},
		{provider.Sample{Rename: "abc", RenameBase64: true}, "k", "xy", "", "", "of 3, 6, 9"},
	} {
		from, to, err := renaming(&c.sample, c.key, c.id)
		if from != c.from || to != c.to || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %q, %q, %v", c, from, to, err)
		}
	}
}
