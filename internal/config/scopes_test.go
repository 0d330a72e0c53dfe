package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestSharedScopes(t *testing.T) {
	const route = "version: 1\nupstream: http://127.0.0.1:1\nstate_dir: /tmp\nroutes:\n" +
		"  a: {path: /a, scope: s, secrets: secret-of-a-route, verify: {hmac: sha256, header: X, format: \"{hex}\"}, key: {json: /id}}\n" +
		"  b: {path: /b, scope: %s, secrets: secret-of-a-route%s, key: {json: /id}}\n"
	const scheme = ", verify: {hmac: sha256, header: X, format: \"{hex}\"}"
	for _, c := range []struct{ name, scope, more, warning string }{
		{"alike", "s", scheme, ""},
		{"apart", "t", scheme + ", on_unknown: hold", ""},
		{"observed", "s", scheme + ", on_unknown: hold, mode: observe", ""},
		{"B11 another provider", "s", ", provider: github", "routes.b.scope"},
		{"another way with what is unknown", "s", scheme + ", on_unknown: hold", "routes.b.on_unknown"},
		{"another number of attempts", "s", scheme + ", attempts: 3", "routes.b.on_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := Load(writeConfig(t, fmt.Sprintf(route, c.scope, c.more)))
			if err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(config.Warnings)
			if shares := strings.Contains(said, "route a"); shares != (c.warning != "") || !strings.Contains(said, c.warning) {
				t.Errorf("warned %s, want %q", said, c.warning)
			}
		})
	}
}
