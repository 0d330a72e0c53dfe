package config

import (
	"testing"

	"oncegate/internal/strictyaml"
	"oncegate/keyextract"
	"oncegate/verify"
)

func TestKeySigned(t *testing.T) {
	for _, c := range []struct {
		scheme, key string
		want        bool
	}{
		{`{hmac: sha256, header: S}`, `{json: /id}`, true},
		{`{hmac: sha256, header: S}`, `[{json: /id}, {const: x}, {form: a}, {xml: /a}, {digest: body}]`, true},
		{`{hmac: sha256, header: S}`, `{header: X-Id}`, false},
		{`{hmac: sha256, header: S}`, `[{json: /id}, {query: id}]`, false},
		{`{hmac: sha256, header: S}`, `{first: [{json: /id}, {json: /old}]}`, true},
		{`{hmac: sha256, header: S}`, `{first: [{header: X-Id}, {json: /id}]}`, false},
		{`{hmac: sha256, header: S, signed: "{header:x-id}.{time}"}`, `{header: X-Id}`, true},
		{`{hmac: sha256, header: S, signed: "{header:X-Id}.{time}"}`, `{json: /id}`, false},
		{`{hmac: sha256, header: S, signed: "{json:/id}{form:a}"}`, `[{json: /id}, {form: a}]`, true},
		{`{hmac: sha256, header: S, signed: "{json:/identity}"}`, `{json: /id}`, false},
		{`{hmac: sha256, header: S, signed: "{method}{target}"}`, `[{method: true}, {path: "^(.*)$"}, {query: a}]`, true},
		{`{hmac: sha256, header: S, signed: "{path}{query:a}"}`, `[{path: "^(.*)$"}, {query: a}]`, true},
		{`{hmac: sha256, header: S, signed: "{body}"}`, `{method: true}`, false},
		{`{hmac: sha256, header: S, signed: "{url}", body_hash: {query: h, hash: sha256}}`, `{json: /id}`, true},
		{`{jwt: HS256, header: S, claims: {body_sha256: h}}`, `{json: /id}`, true},
		{`{jwt: HS256, header: S}`, `{json: /id}`, false},
		{`{token: true, header: S}`, `{json: /id}`, false},
		{`{http: "https://verifier.example"}`, `{json: /id}`, false},
		{`[{token: true, header: S}, {hmac: sha256, header: S}]`, `{json: /id}`, true},
		{`{any: [{hmac: sha256, header: S}, {hmac: sha1, header: T}]}`, `{json: /id}`, true},
		{`{any: [{hmac: sha256, header: S}, {token: true, header: T}]}`, `{json: /id}`, false},
		{`{none: true}`, `{json: /id}`, false},
		{`{hmac: sha256, header: S}`, `[]`, false},
	} {
		var into struct {
			Verify []verify.Spec     `yaml:"verify"`
			Key    []keyextract.Part `yaml:"key"`
		}
		root, faults := strictyaml.Parse([]byte("verify: " + c.scheme + "\nkey: " + c.key))
		if faults == nil {
			faults = strictyaml.Decode(root, &into, strictyaml.Options{})
		}
		if faults != nil {
			t.Fatal(faults)
		}
		if got := keySigned(into.Verify, keyextract.Spec{Key: into.Key}); got != c.want {
			t.Errorf("%s signs %s: %v", c.scheme, c.key, got)
		}
	}
}

func TestStateDir(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name string
		said *string
		env  map[string]string
		want string // empty: a fault
	}{
		{"said", text("/srv/x"), map[string]string{"STATE_DIRECTORY": "/var/lib/oncegate"}, "/srv/x"},
		{"systemd", nil, map[string]string{"STATE_DIRECTORY": "/var/lib/oncegate", "HOME": "/root"}, "/var/lib/oncegate"},
		{"systemd, several", nil, map[string]string{"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a"},
		{"XDG", nil, map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/root"}, "/x/oncegate"},
		{"XDG, relative, which its specification ignores", nil, map[string]string{"XDG_STATE_HOME": "x", "HOME": "/root"}, "/root/.local/state/oncegate"},
		{"home", nil, map[string]string{"HOME": "/root"}, "/root/.local/state/oncegate"},
		{"nothing", nil, nil, ""},
		{"empty", text(""), map[string]string{"HOME": "/root"}, ""},
	} {
		l := &loader{top: topLevel{StateDir: c.said}, vars: &variables{env: c.env}}
		if got := l.stateDir(); got != c.want || (len(l.faults) > 0) != (c.want == "") {
			t.Errorf("%s: got %q, %v", c.name, got, l.faults)
		}
	}
}
