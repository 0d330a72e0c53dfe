package config

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"oncegate/internal/strictyaml"
	"oncegate/keyextract"
	"oncegate/provider"
	"oncegate/verify"
)

// compileVerifier compiles the route's signature schemes into r. It also says
// whether the key lies within what they sign.
func (l *loader) compileVerifier(c *Config, field string, spec routeSpec, preset *provider.Preset, rules keyextract.Spec, r *Route) {
	if l.faulty(field + ".provider") {
		return // what it would have said is missing everywhere
	}
	specs := l.schemes(field, spec, preset, r.Mode)
	r.KeySigned = keySigned(specs, rules)
	if preset != nil && spec.Verify.Kind == 0 && spec.Key == nil {
		r.KeySigned = preset.KeySigned
	}
	secrets := l.secrets(field, spec.Secrets)
	params := l.params(field, spec, preset)
	if len(specs) == 0 || verify.Unverified(specs) {
		if len(secrets) > 0 && !l.faulty(field+".verify") {
			l.fault(field+".secrets", "are given, but nothing is verified with them; say how, under verify, or remove them")
		}
		if len(specs) > 0 && r.Mode == ModeEnforce && spec.Caller == nil {
			l.warn(field+".verify", "nothing is verified: whoever knows the path can send events, and spend the IDs of true ones")
		}
		return
	}
	if needsSecret(specs) && len(secrets) == 0 {
		l.fault(field+".secrets", "are missing: say the signing secret, as in secrets: ${%s}", exampleVariable(r))
	}
	l.schemeSecrets(field+".verify", specs)
	specs = l.testKey(field, spec.TestKey, specs, secrets)
	if l.faulty(field+".secrets") || l.faulty(field+".test_key") || l.faulty(field+".params") || l.faulty(field+".verify") {
		return
	}
	options := verify.Options{Secrets: func() ([]string, error) { return secrets, nil }, Params: params}
	if c.PublicURL != nil {
		options.PublicURL = c.PublicURL.String()
	}
	verifier, err := verify.Compile(specs, options)
	if err != nil {
		l.schemeFaults(field, len(secrets) > 0, spec.TestKey != nil, err)
		return
	}
	r.Verifier = verifier
}

// schemes are those that the route writes out, else the preset's.
func (l *loader) schemes(field string, spec routeSpec, preset *provider.Preset, mode Mode) (specs []verify.Spec) {
	n := spec.Verify
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "none":
		return []verify.Spec{{None: true}}
	case n.Kind == yaml.ScalarNode:
		l.fault(field+".verify", "must be a scheme, a list of schemes, or none")
	case n.Kind != 0:
		faults := strictyaml.Decode(&n, &specs, strictyaml.Options{Field: field + ".verify", Expand: l.vars.expand})
		if len(faults) == 0 && len(specs) == 0 {
			l.fault(field+".verify", "is empty; say a scheme, or none")
		}
		l.addFaults(l.file, faults)
	case preset != nil && len(preset.Verify) > 0:
		return slices.Clone(preset.Verify)
	case preset == nil && spec.Provider == nil:
		l.fault(field+".verify", "is missing: without a provider, say how deliveries are signed; verify: none lets everyone in")
	case preset != nil && mode == ModeEnforce:
		l.fault(field+".verify", "is missing: %s signs nothing that could be verified; keep mode: observe, or write verify: none, which lets everyone in", preset.Name)
	}
	return specs
}

// placeholder is what shells, templates and manuals write where a secret is to be.
var placeholder = regexp.MustCompile(`^(?:\$[A-Z_][A-Z0-9_]*|\$\([^)]*\)|%[A-Z_][A-Z0-9_]*%|\{\{.*\}\}|<[^<>]*>)$`)

// secrets reads a list of secrets. It is nil where there is none. One that is
// written out may not be a placeholder, which everybody knows.
func (l *loader) secrets(field string, texts []string) (secrets []string) {
	for i, text := range texts {
		if placeholder.MatchString(strings.TrimSpace(text)) {
			l.fault(item(field+".secrets", i), "is a placeholder, in whose place nothing was put; a variable is written ${NAME}. A secret that does look so has to stand in a file: file:/path")
		}
		secrets = append(secrets, l.secret(item(field+".secrets", i), text))
	}
	return secrets
}

// schemeSecrets replaces the secrets that schemes have of their own by what they
// refer to.
func (l *loader) schemeSecrets(field string, specs []verify.Spec) {
	for i := range specs {
		at := item(field, i)
		if len(specs[i].Secrets) > 0 {
			specs[i].Secrets = l.secrets(at, specs[i].Secrets)
		}
		if len(specs[i].Any) > 0 {
			specs[i].Any = slices.Clone(specs[i].Any)
			l.schemeSecrets(at+".any", specs[i].Any)
		}
	}
}

// testKey puts a key of one's own in place of those that are fetched. It warns of
// that, and of a private key among the secrets, which is the same thing where a
// provider's public key is no secret.
func (l *loader) testKey(field string, text *string, specs []verify.Spec, secrets []string) []verify.Spec {
	for i, secret := range secrets {
		if strings.HasPrefix(strings.TrimSpace(secret), "-----BEGIN") && strings.Contains(secret, "PRIVATE KEY-----") {
			l.warn(item(field+".secrets", i), "is a private key of your own, for tests: the provider's deliveries are refused, and whoever holds the key can make events")
		}
	}
	if text == nil {
		return specs
	}
	at := field + ".test_key"
	key := strings.TrimSpace(l.secret(at, *text))
	with, used := verify.WithTestKey(specs, key)
	if !strings.HasPrefix(key, "-----BEGIN") {
		l.fault(at, "must be a key or a certificate in PEM, as `oncegate send --make-key FILE` writes it")
	}
	if !used {
		l.fault(at, "is of no use here: no keys are fetched on this route; remove it")
	}
	l.warn(at, "is a key of your own, for tests: the provider's deliveries are refused, and whoever holds the private key can make events; remove it from a route that the provider calls")
	return with
}

// needsSecret reports whether one of the schemes checks with a secret of the
// route's.
func needsSecret(specs []verify.Spec) bool {
	return slices.ContainsFunc(specs, func(s verify.Spec) bool {
		keyed := s.HMAC != "" || s.Hash != "" || s.Token || s.Basic
		public := s.Ed25519 || s.ECDSA != "" || s.RSA != "" || s.JWT != ""
		return len(s.Secrets) == 0 && (keyed || public && s.Keys == nil) || needsSecret(s.Any)
	})
}

// exampleVariable is a good name for the variable that holds a route's secret.
func exampleVariable(r *Route) string {
	name := r.Provider
	if name == "" {
		name = r.Name
	}
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_WEBHOOK_SECRET"
}

// schemeFaults takes over the faults of verify, whose fields count from the list
// of schemes on. What is wrong with the route's own secrets or test key is said
// there.
func (l *loader) schemeFaults(field string, own, testKey bool, err error) {
	var faults verify.Faults
	if !errors.As(err, &faults) {
		l.fault(field+".verify", "%s", err)
	}
	for _, f := range faults {
		at := field + ".verify" + f.Field
		switch of := strings.HasSuffix(f.Field, ".secrets"); {
		case of && testKey:
			at = field + ".test_key"
		case of && own:
			at = field + ".secrets"
		}
		l.fault(at, "%s", f.Msg)
	}
}
