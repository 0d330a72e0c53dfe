package config

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"oncegate/internal/strictyaml"
	"oncegate/provider"
)

var methodName = regexp.MustCompile(`^[A-Z]{1,32}$`)

const (
	// defaultWait is for senders whose patience is not known: 80 % of 5s, which
	// is what the least patient of the known ones have.
	defaultWait            = 4 * time.Second
	defaultUpstreamTimeout = 120 * time.Second
)

func (l *loader) compileRoutes(c *Config) []*Route {
	routes := make([]*Route, 0, len(l.order))
	paths := map[string]string{} // path → route
	for _, name := range l.order {
		spec, ok := l.top.Routes[name]
		if !ok {
			continue // its key has a fault already
		}
		if !routeName.MatchString(name) {
			f := l.locate("routes."+name, "has a route whose name is not 1 to 64 letters, digits, - and _")
			f.Field = "routes"
			l.faults = append(l.faults, f)
			continue
		}
		if l.misread("routes." + name) {
			continue
		}
		r := l.compileRoute(c, name, spec)
		if other, taken := paths[r.Path]; taken && r.Path != "" {
			l.fault("routes."+name+".path", "is that of route %s too; one path is one route", other)
		}
		paths[r.Path] = name
		routes = append(routes, r)
	}
	l.checkScopes(routes)
	return routes
}

// compileRoute makes one route of what the route, its preset and the top level
// say, in this order.
func (l *loader) compileRoute(c *Config, name string, spec routeSpec) *Route {
	field := "routes." + name
	l.checkPolicy(field+".", spec.policy)
	preset := l.preset(field, spec)
	r := &Route{Name: name, Scope: name, Preset: preset, Path: l.routePath(field, spec), Upstream: c.Upstream}
	if spec.Provider != nil {
		r.Provider = *spec.Provider
	}
	if spec.Scope != nil {
		r.Scope = *spec.Scope
		if !visible128.MatchString(r.Scope) || strings.Contains(r.Scope, ":") {
			// The app is told scope:key, which must name one event.
			l.fault(field+".scope", "must be 1 to 128 characters of visible ASCII without a colon")
		}
	}
	switch {
	case spec.Upstream != nil:
		r.Upstream = l.upstream(field+".upstream", *spec.Upstream)
	case l.top.Upstream == nil:
		l.fault("upstream", "is missing: say where the app is, as in upstream: http://127.0.0.1:8000")
	}
	r.Methods = l.methods(field, spec, preset)
	r.Statuses = l.statuses(field, spec, preset)
	r.Mode = l.mode(field, spec, preset)
	said := l.policyOf(spec, preset)
	rules := l.compileRules(field, spec, preset, said, r)
	l.compileVerifier(c, field, spec, preset, rules, r)
	l.setPolicies(field, spec, preset, said, r)
	l.compileWitness(field, spec, r)
	l.checkRoute(c, r, said)
	return r
}

// preset returns the route's preset; nil without one.
func (l *loader) preset(field string, spec routeSpec) *provider.Preset {
	if spec.Provider == nil {
		return nil
	}
	preset, err := provider.Get(*spec.Provider)
	if err != nil {
		msg := "names no preset; `oncegate providers` lists them; without one, say path, secrets, verify and key by hand"
		if names, err := provider.Names(); err == nil {
			if near := strictyaml.Nearest(*spec.Provider, names); near != "" {
				msg = "names no preset; did you mean " + near + "? `oncegate providers` lists them"
			}
		}
		l.fault(field+".provider", "%s", msg)
		return nil
	}
	return preset
}

func (l *loader) routePath(field string, spec routeSpec) string {
	p := value(spec.Path)
	if spec.Path == nil {
		l.fault(field+".path", "is missing: say where deliveries arrive, as in path: /stripe/webhook")
		return ""
	}
	if !plainPath(p) {
		l.fault(field+".path", "must be the path as the app's router has it, and nothing beside: it begins with /, and has no query, no %%, no // or dots to resolve, no /index.php at its start and no / at its end")
	}
	return p
}

// plainPath reports whether a path is written in the one form that all others of
// it are brought to before they are compared, so that two routes with one path
// are plainly the same.
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && !strings.HasPrefix(p, "/index.php") &&
		!strings.ContainsAny(p, "?#%") && !strings.ContainsFunc(p, unicode.IsControl)
}

func (l *loader) methods(field string, spec routeSpec, preset *provider.Preset) []string {
	for i, method := range spec.Methods {
		if !methodName.MatchString(method) || method == "CONNECT" || method == "TRACE" {
			l.fault(item(field+".methods", i), "must be a method in capitals that can carry an event, as POST is")
		}
	}
	switch {
	case spec.Methods != nil && len(spec.Methods) == 0:
		l.fault(field+".methods", "is empty: no delivery would be taken; remove it for POST")
	case spec.Methods != nil:
		return spec.Methods
	case preset != nil && len(preset.Methods) > 0:
		return preset.Methods
	}
	return []string{"POST"}
}

// mode is the route's own word; else the preset's, where that says that it is
// not safe to enforce and the top level does not switch it off altogether.
func (l *loader) mode(field string, spec routeSpec, preset *provider.Preset) Mode {
	top := Mode(value(l.top.Mode))
	switch {
	case spec.Mode != nil:
		return Mode(*spec.Mode)
	case preset != nil && preset.Mode == string(ModeObserve) && top == ModeEnforce:
		l.warn(field+".provider", "is observed and not enforced (%s); mode: enforce on the route insists", preset.ObserveWhy)
		return ModeObserve
	}
	return top
}

// statusWords are the result words whose status a route may choose: those of
// refusals.
func statusWords() []string {
	return []string{"busy", "held", "malformed", "mismatch", "overload", "settling", "unavailable", "unkeyed", "unknown", "unreached", "unverified"}
}

func (l *loader) statuses(field string, spec routeSpec, preset *provider.Preset) map[string]int {
	statuses := map[string]int{}
	if preset != nil {
		maps.Copy(statuses, preset.Statuses)
	}
	for _, word := range slices.Sorted(maps.Keys(spec.Statuses)) {
		status, at := spec.Statuses[word], field+".statuses"
		if routeName.MatchString(word) {
			at += "." + word
		}
		switch {
		case !slices.Contains(statusWords(), word):
			l.fault(at, "is no refusal's result word; there are %s", strings.Join(statusWords(), ", "))
		case status < 400 || status > 599:
			l.fault(at, "must be between 400 and 599: a refusal must not look like a success")
		}
		statuses[word] = status
	}
	return statuses
}

// policyOf takes each policy from the route, else from the preset, else from the
// top level. What is nil was said nowhere.
func (l *loader) policyOf(spec routeSpec, preset *provider.Preset) policy {
	p := spec.policy
	if preset != nil {
		of := presetPolicy(preset)
		fill(&p, &of)
	}
	fill(&p, &l.top.policy)
	return p
}

// setPolicies sets the route's policies to what was said, else to what follows
// from the rest of the route.
func (l *loader) setPolicies(field string, spec routeSpec, preset *provider.Preset, p policy, r *Route) {
	if preset != nil {
		r.Patience, r.RetriesFor, r.NeverRetries = preset.Patience, preset.Retries.For, preset.Retries.Never
		r.MismatchCoversTarget = preset.DigestTarget
	}
	if spec.Patience != nil {
		r.Patience = *spec.Patience
		between(l, field+".patience", spec.Patience, 0, 10*time.Minute)
	}
	if spec.RetriesFor != nil {
		r.RetriesFor, r.NeverRetries = *spec.RetriesFor, *spec.RetriesFor == 0
		between(l, field+".retries_for", spec.RetriesFor, 0, 3650*day)
	}
	impatient := "refuse"
	if r.NeverRetries {
		impatient = "forward"
	}
	mismatch := "replay"
	if !r.KeySigned && !r.Batches { // a batch that is cut anew has another body
		mismatch = "refuse"
	}
	r.OnMissingKey, r.OnUnknown, r.Record = value(p.OnMissingKey), value(p.OnUnknown), value(p.Record)
	r.OnMismatch = or(p.OnMismatch, mismatch)
	r.OnStoreOutage, r.OnOverload = or(p.OnStoreOutage, impatient), or(p.OnOverload, impatient)
	r.Attempts, r.Redact = value(p.Attempts), slices.Concat(p.Redact, r.Redact, r.Verifier.Credentials())
	r.UnknownStatuses, _ = parseStatuses(p.UnknownStatuses)
	r.Wait = or(p.Wait, defaultWait)
	if p.Wait == nil && r.Patience > 0 {
		r.Wait = r.Patience * 8 / 10
	}
	r.Lease, r.AppLimit, r.Retention = value(p.Lease), value(p.AppLimit), value(p.Retention)
	r.UpstreamTimeout = or(p.UpstreamTimeout, r.AppLimit)
	if r.UpstreamTimeout == 0 {
		r.UpstreamTimeout = defaultUpstreamTimeout
	}
	r.MaxBody, r.MaxAnswer = int64(value(p.MaxBody)), int64(value(p.MaxAnswer))
	if (r.OnUnknown == "hold" || r.OnUnknown == "witness") && r.Record == "none" {
		r.Record = "unsettled"
	}
}

// or is what p points to, or what holds where nothing was said.
func or[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

// presetPolicy is what a preset says about policies. Its mode is not among
// them: see mode.
func presetPolicy(preset *provider.Preset) (p policy) {
	for _, word := range []struct {
		into **string
		text string
	}{
		{&p.OnMissingKey, preset.OnMissingKey}, {&p.OnMismatch, preset.OnMismatch}, {&p.OnStoreOutage, preset.OnStoreOutage},
		{&p.OnOverload, preset.OnOverload}, {&p.OnUnknown, preset.OnUnknown},
	} {
		if word.text != "" {
			*word.into = &word.text
		}
	}
	if preset.MaxBody > 0 {
		p.MaxBody = &preset.MaxBody
	}
	return p
}
