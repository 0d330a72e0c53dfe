package config

import (
	"strings"

	"oncegate/internal/strictyaml"
	"oncegate/provider"
)

// Flags are what the command line may say beside the file's name. Empty ones
// say nothing.
type Flags struct {
	Listen, Health, Admin string
	StateDir, Upstream    string
	Mode, LogLevel        string
	// Routes are routes without a file, as NAME=PATH, where NAME is a preset.
	// Their secret is the variable NAME_WEBHOOK_SECRET, in upper case and with
	// _ for -.
	Routes []string
	// Params are what presets of such routes need beside the secret.
	Params map[string]string
}

// applyFlags puts flags over the environment and the file.
func (l *loader) applyFlags() {
	f := l.options.Flags
	for _, flag := range []struct {
		name, field, value string
		into               **string
	}{
		{"--listen", "listen", f.Listen, &l.top.Listen},
		{"--health", "health", f.Health, &l.top.Health},
		{"--admin", "admin", f.Admin, &l.top.Admin},
		{"--state-dir", "state_dir", f.StateDir, &l.top.StateDir},
		{"--upstream", "upstream", f.Upstream, &l.top.Upstream},
		{"--mode", "mode", f.Mode, &l.top.Mode},
		{"--log-level", "log_level", f.LogLevel, &l.top.LogLevel},
	} {
		if flag.value != "" {
			*flag.into = &flag.value
			l.set[flag.field] = flag.name
		}
	}
	if len(f.Routes) == 0 {
		return
	}
	if l.root != nil {
		l.faults = append(l.faults, strictyaml.Fault{Field: "--route", Msg: "works without a file only; add the route to " + l.file})
		return
	}
	l.top.Routes = map[string]routeSpec{}
	for _, text := range f.Routes {
		l.addFlagRoute(text)
	}
}

func (l *loader) addFlagRoute(text string) {
	fault := func(msg string) { l.faults = append(l.faults, strictyaml.Fault{Field: "--route", Msg: msg}) }
	name, path, ok := strings.Cut(text, "=")
	if !ok || !routeName.MatchString(name) {
		fault("must be NAME=PATH, as in --route stripe=/stripe/webhook")
		return
	}
	if _, twice := l.top.Routes[name]; twice {
		fault("names " + name + " twice; a file can give two routes one provider")
		return
	}
	l.order = append(l.order, name)
	for _, field := range []string{"path", "provider", "secrets", "params", "caller", "key", "verify"} {
		l.set["routes."+name+"."+field] = "--route " + name
	}
	spec := routeSpec{Provider: &name, Path: &path, Params: l.options.Flags.Params}
	if preset, err := provider.Get(name); err == nil && needsSecret(preset.Verify) {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_WEBHOOK_SECRET"
		secret, err := l.vars.get(variable)
		if err != nil {
			l.fault("routes."+name+".secrets", "%s", err)
		}
		spec.Secrets = []string{secret}
	}
	l.top.Routes[name] = spec
}
