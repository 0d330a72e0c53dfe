package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oncegate/internal/strictyaml"
)

// canary stands wherever a secret may stand; nothing that is printed may hold it.
const canary = "CANARY-s3cret-7"

func writeConfig(t testing.TB, text string) Options {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "oncegate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{Path: path, Env: []string{"HOME=" + dir, "SECRET=" + canary}}
}

const routeWith = "upstream: http://127.0.0.1:8000\nroutes: {shop: {path: /hook, provider: %s, secrets: %s}}\n"

func TestBadSecretsRefuseToStart(t *testing.T) {
	newline := filepath.Join(t.TempDir(), "newline")
	if err := os.WriteFile(newline, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": `""`, "blank": `"   "`, "unset": `"${NO_SUCH}"`, "undecodable": `"whsec_!!!!"`, "a file with only a newline": "file:" + newline,
		"no file": "file:/nonexistent", "null": "", "an empty list": "[]", "one of two": `[good, ""]`,
	} {
		t.Run("B18 "+name, func(t *testing.T) {
			c, err := Load(writeConfig(t, fmt.Sprintf(routeWith, "standard-webhooks", text)))
			if err == nil || c != nil {
				t.Fatal("it would start")
			}
			if msg := err.Error(); !strings.Contains(msg, "routes.shop.secrets") || strings.Contains(msg, "whsec_") {
				t.Errorf("must name route and field and not the value: %s", msg)
			}
		})
	}
}

func TestSecretFileLosesOneNewline(t *testing.T) {
	for content, want := range map[string]string{"s\n": "s", "s\r\n": "s", "s\n\n": "s\n", "s": "s", " s ": " s "} {
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		l := &loader{}
		if got := l.secret("secrets[0]", "file:"+file); got != want || len(l.faults) > 0 {
			t.Errorf("%q is read as %q, want %q; %v", content, got, want, l.faults)
		}
	}
}

func TestNothingPrintsSecrets(t *testing.T) {
	o := writeConfig(t, `
upstream: http://127.0.0.1:8000
namespace: shop
store: {url: "postgres://db/shop?application_name=${SECRET}", user: app, password: "${SECRET}"}
routes: {shop: {path: /hook, provider: stripe, secrets: "${SECRET}"}}
`)
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.Store.URL, canary) {
		t.Fatal("the canary is not where it should be, so this test shows nothing")
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("config", "config", c, "store", c.Store, "route", c.Routes[0])
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", "config", c, "store", c.Store, "route", c.Routes[0])
	encoded, err := json.Marshal(c.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		fmt.Fprintf(&log, verb+verb+verb+verb, c, *c, c.Store, c.Routes[0])
	}
	if all := log.String() + string(encoded); strings.Contains(all, canary) {
		t.Errorf("a secret is printed:\n%s", all)
	}
}

// FuzzConfig: whatever the file, there is no panic, any error is Faults of one
// line each, and nothing that stands in a variable is part of it.
func FuzzConfig(f *testing.F) {
	for _, provider := range []string{"stripe", "standard-webhooks", "idempotency-key", "x"} {
		f.Add(fmt.Sprintf(routeWith, provider, `"${SECRET}"`))
	}
	f.Add("upstream: ${SECRET}\nstore: ${SECRET}\nlease: ${SECRET}\nstate_dir: /x\nroutes: {a: {path: '${SECRET}', verify: {hmac: '${SECRET}', header: '${SECRET}', signed: '{${SECRET}}'}, key: {json: '${SECRET}'}, secrets: '${SECRET}'}}")
	f.Add("store: {url: 'postgres://${SECRET}:x@${SECRET}:y/d', password: '${SECRET}'}\nroutes: {a: {params: {x: '${SECRET}'}, guard: {path: '(${SECRET}'}, handshakes: [{name: '${SECRET}', when: {json: /a, in: ['${SECRET}']}}]}}")
	f.Add("routes: {a: {path: /a, caller: {first: [{query: '${SECRET}'}, {header: a}]}, tags: {a: {form: '${SECRET}'}}, unknown_statuses: ['${SECRET}'], statuses: {busy: '${SECRET}'}}}")
	dir := f.TempDir()
	path := filepath.Join(dir, "oncegate.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, canary) || strings.Contains(text, "file:") {
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(Options{Path: path, Env: []string{"HOME=" + dir, "SECRET=" + canary}})
		if err == nil {
			return
		}
		var faults strictyaml.Faults
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Fatalf("the error is no Faults: %T", err)
		}
		for _, fault := range faults {
			if s := fault.String(); strings.Contains(s, canary) || strings.ContainsAny(s, "\r\n") {
				t.Fatalf("a fault holds a secret or several lines: %q", s)
			}
		}
	})
}
