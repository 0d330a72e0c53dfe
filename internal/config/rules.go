package config

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"oncegate/keyextract"
	"oncegate/provider"
)

// compileRules compiles what is read from a route's deliveries into r, and
// returns what it compiled.
func (l *loader) compileRules(field string, spec routeSpec, preset *provider.Preset, p policy, r *Route) keyextract.Spec {
	rules := keyextract.Spec{Key: spec.Key, Each: value(spec.Each), Guard: spec.Guard, Tags: map[string]keyextract.Part{}}
	if preset != nil {
		if spec.Key == nil {
			rules.Key, rules.Each = preset.Key, or(spec.Each, preset.Each)
		}
		if spec.Guard == nil {
			rules.Guard = preset.Guard
		}
		maps.Copy(rules.Tags, preset.Tags)
	}
	maps.Copy(rules.Tags, spec.Tags)
	said := rules
	shift := 0
	switch {
	case spec.Caller != nil:
		rules.Key = append([]keyextract.Part{digested(*spec.Caller)}, rules.Key...)
		shift = 1
	case preset != nil && preset.CallerRequired:
		l.fault(field+".caller", "is missing: clients make these keys themselves, so the key must hold who sends it, as in caller: {header: Authorization}")
	}
	if value(p.OnMismatch) == "run" {
		rules.Key = append(rules.Key[:len(rules.Key):len(rules.Key)], keyextract.Part{Digest: "body"})
	}
	switch {
	case l.faulty(field + ".provider"):
	case len(said.Key) == 0 && r.Mode == ModeEnforce:
		l.fault(field+".key", "is missing: say where the event's ID stands, as in key: {json: /id}, or use mode: observe")
	case len(rules.Key) > 0 || len(rules.Tags) > 0:
		var err error
		r.Rules, err = keyextract.Compile(rules)
		l.ruleFaults(field, err, shift)
		l.compileBatch(field, spec, p, rules, r)
	}
	r.HasGuard = len(rules.Guard) > 0
	r.Redact = digestedHeaders(rules.Key)
	l.compileHandshakes(field, spec, preset, r)
	return said
}

// digested makes a part, and those it chooses from, yield a digest: it may be a
// credential, which must not be stored.
func digested(p keyextract.Part) keyextract.Part {
	first := make([]keyextract.Part, len(p.First))
	for i := range p.First {
		first[i] = digested(p.First[i])
	}
	if len(first) > 0 {
		p.First = first
	} else if p.As == "" {
		p.As = "sha256"
	}
	return p
}

// digestedHeaders returns the headers of which a key holds digests alone, since
// they are credentials.
func digestedHeaders(parts []keyextract.Part) (names []string) {
	for i := range parts {
		p := &parts[i]
		names = append(names, digestedHeaders(p.First)...)
		if p.Header != "" && p.As == "sha256" {
			names = append(names, p.Header)
		}
	}
	return names
}

// ruleFaults takes over the faults of keyextract, whose fields count from the
// Spec on. Where the caller was put before the key, shift is 1.
func (l *loader) ruleFaults(field string, err error, shift int) {
	var faults keyextract.Faults
	if err != nil && !errors.As(err, &faults) {
		l.fault(field+".key", "%s", err)
	}
	for _, f := range faults {
		at := f.Field
		if rest, ok := strings.CutPrefix(at, "key["); ok && shift > 0 {
			index, after, _ := strings.Cut(rest, "]")
			if n, err := strconv.Atoi(index); err == nil && n > 0 {
				at = item("key", n-shift) + after
			} else {
				at = "caller" + after
			}
		}
		l.fault(field+"."+at, "%s", f.Msg)
	}
}

func (l *loader) compileHandshakes(field string, spec routeSpec, preset *provider.Preset, r *Route) {
	handshakes := spec.Handshakes
	if handshakes == nil && preset != nil {
		handshakes = preset.Handshakes
	}
	seen := map[string]bool{}
	for i, h := range handshakes {
		at := item(field+".handshakes", i)
		if !routeName.MatchString(h.Name) || seen[h.Name] {
			l.fault(at+".name", "must be a name of its own, of letters, digits, - and _")
		}
		seen[h.Name] = true
		for j, method := range h.Methods {
			if !methodName.MatchString(method) {
				l.fault(item(at+".methods", j), "must be a method in capitals")
			}
		}
		if reflect.ValueOf(h.When).IsZero() {
			l.fault(at+".when", "is missing: without a condition every request would be a handshake")
			continue
		}
		methods := h.Methods
		if len(methods) == 0 {
			methods = r.Methods
		}
		match, err := keyextract.CompileCondition(h.When)
		l.conditionFaults(at+".when", err)
		r.Handshakes = append(r.Handshakes, Handshake{Name: h.Name, Methods: methods, Unsigned: h.Unsigned, When: match})
	}
}

// conditionFaults takes over the faults of a condition.
func (l *loader) conditionFaults(field string, err error) {
	var faults keyextract.Faults
	if err != nil && !errors.As(err, &faults) {
		l.fault(field, "%s", err)
	}
	for _, f := range faults {
		l.fault(strings.TrimSuffix(field+"."+f.Field, "."), "%s", f.Msg)
	}
}
