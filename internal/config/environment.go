package config

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v10"

	"oncegate/internal/strictyaml"
)

// envPrefix begins the name of every variable that overrides a field.
const envPrefix = "ONCEGATE_"

// applyEnvironment puts ONCEGATE_* over the file's top level. An empty variable
// says nothing.
func (l *loader) applyEnvironment() {
	ours := map[string]string{}
	for name, value := range l.vars.env {
		if strings.HasPrefix(name, envPrefix) && name != envPrefix && value != "" {
			ours[name] = value
		}
	}
	var top topLevel
	l.parseEnvironment(&top, ours, "")
	l.parseEnvironment(&top.policy, ours, "") // the library leaves unexported fields alone
	var store storeSpec
	l.parseEnvironment(&store, ours, "store.")
	if password, ok := ours[envPrefix+"STORE_PASSWORD"]; ok {
		password = strings.TrimSuffix(password, "\n") // its blanks are its own
		store.Password = &password
	}
	if store.URL != nil {
		l.store = store // another store altogether: nothing of the file's fits
	} else {
		fill(&store, &l.store)
		l.store = store
	}
	fill(&top, &l.top)
	l.top = top
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if !l.isSet(name) && !kubernetesMade(name) {
			l.warnings = append(l.warnings, "the environment variable "+name+" has the prefix of oncegate's own, but names no field; it does nothing")
		}
	}
}

func (l *loader) isSet(variable string) bool {
	for _, by := range l.set {
		if by == variable {
			return true
		}
	}
	return false
}

// kubernetesMade reports whether a variable is one of those that Kubernetes puts
// into every container for a Service called oncegate.
func kubernetesMade(name string) bool {
	return strings.HasPrefix(name, envPrefix+"SERVICE_") || name == envPrefix+"PORT" || strings.HasPrefix(name, envPrefix+"PORT_")
}

// parseEnvironment fills the struct *into, and notes which variable set which
// field. Faults name the variable; the library would name the Go field, and
// quote the value.
func (l *loader) parseEnvironment(into any, vars map[string]string, prefix string) {
	variableOf := map[string]string{} // Go field → variable
	for _, f := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		tag := f.Tag.Get("env")
		if tag == "" || len(f.Index) > 1 {
			continue
		}
		variable := envPrefix + tag
		variableOf[f.Name] = variable
		if _, ok := vars[variable]; ok {
			l.set[prefix+f.Tag.Get("yaml")] = variable
		}
	}
	err := env.ParseWithOptions(into, env.Options{Environment: vars, Prefix: envPrefix, FuncMap: envParsers()})
	var all env.AggregateError
	switch {
	case err == nil:
		return
	case !errors.As(err, &all):
		l.faults = append(l.faults, strictyaml.Fault{Field: envPrefix + "*", Msg: "the environment can't be read"})
		return
	}
	for _, err := range all.Errors {
		fault := strictyaml.Fault{Field: envPrefix + "*", Msg: "holds a value of the wrong type"}
		var parse env.ParseError
		if errors.As(err, &parse) {
			fault.Field = variableOf[parse.Name]
			// The library leaves a zero value behind, which would count as said.
			reflect.ValueOf(into).Elem().FieldByName(parse.Name).SetZero()
			// The library wraps nothing, but keeps our parsers' errors.
			if known := (envValueError{}); errors.As(parse.Err, &known) {
				fault.Msg = known.Error()
			}
		}
		l.faults = append(l.faults, fault)
	}
}

// envValueError is an error of one of our own parsers: it quotes no value.
type envValueError struct{ error }

// envParsers read every type that a field with an env tag has.
func envParsers() map[reflect.Type]env.ParserFunc {
	parser := func(parse func(string) (any, error)) env.ParserFunc {
		return func(text string) (any, error) {
			value, err := parse(strings.TrimSpace(text))
			if err != nil {
				return nil, envValueError{err}
			}
			return value, nil
		}
	}
	return map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[time.Duration]():   parser(func(s string) (any, error) { return strictyaml.ParseDuration(s) }),
		reflect.TypeFor[strictyaml.Size](): parser(func(s string) (any, error) { return strictyaml.ParseSize(s) }),
		reflect.TypeFor[string]():          parser(func(s string) (any, error) { return s, nil }),
		reflect.TypeFor[int](): parser(func(s string) (any, error) {
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, errors.New("must be a whole number")
			}
			return n, nil
		}),
	}
}
