package config

import (
	"fmt"
	"slices"
	"strings"

	"oncegate/internal/strictyaml"
)

// maxFaults bounds the work on a file that is wrong throughout.
const maxFaults = 1000

// fault notes that something is wrong with a field. A field that has a fault
// already, or that holds or is within one that has, gets no second: what follows
// from a fault is no news.
func (l *loader) fault(field, format string, args ...any) {
	if len(l.faults) >= maxFaults || l.faulty(field) {
		return
	}
	l.faults = append(l.faults, l.locate(field, fmt.Sprintf(format, args...)))
}

// hideValues is the last guard over the messages: other packages made some of
// them, and whatever stood in a variable or where a secret belongs must not be
// in any. Texts of less than 4 bytes are no secrets.
func (l *loader) hideValues() {
	var pairs []string
	for _, text := range slices.Concat(l.hidden, l.vars.used) {
		if len(text) >= 4 {
			pairs = append(pairs, text, "(hidden)")
		}
	}
	hide := strings.NewReplacer(pairs...)
	for i := range l.faults {
		l.faults[i].Msg = hide.Replace(l.faults[i].Msg)
	}
	for i := range l.warnings {
		l.warnings[i] = hide.Replace(l.warnings[i])
	}
}

// locate says where a field's value came from: a line of the file, a variable
// or a flag.
func (l *loader) locate(field, msg string) strictyaml.Fault {
	msg = strings.ReplaceAll(msg, "\n", "; ") // one line a fault
	if by, ok := l.setBy(field); ok {
		return strictyaml.Fault{Field: by, Msg: msg}
	}
	f := strictyaml.Fault{Field: field, Msg: msg}
	if l.root != nil {
		f.File, f.Line = l.file, strictyaml.Line(l.root, field)
	}
	return f
}

// setBy returns the variable or flag that set a field.
func (l *loader) setBy(field string) (string, bool) {
	whole, _, _ := strings.Cut(field, "[")
	by, ok := l.set[whole]
	return by, ok
}

// faulty reports whether a field, or one that holds it or is within it, has a
// fault. The name of a route alone doesn't count: its fields are many.
func (l *loader) faulty(field string) bool {
	if by, ok := l.setBy(field); ok {
		field = by
	}
	for _, f := range l.faults {
		if f.Field == field || f.Field != "" && within(field, f.Field) && !isRoute(f.Field) || within(f.Field, field) {
			return true
		}
	}
	return false
}

// misread reports whether a route as a whole has a fault, as where it is no
// mapping or is given twice: what its fields lack is no news.
func (l *loader) misread(route string) bool {
	return slices.ContainsFunc(l.faults, func(f strictyaml.Fault) bool { return f.Field == route })
}

func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

func isRoute(field string) bool {
	rest, ok := strings.CutPrefix(field, "routes.")
	return field == "routes" || ok && !strings.ContainsAny(rest, ".[")
}

// addFaults takes over faults that name their fields themselves.
func (l *loader) addFaults(file string, faults strictyaml.Faults) {
	for _, f := range faults {
		f.File = file
		l.faults = append(l.faults, f)
	}
}

func (l *loader) warn(field, format string, args ...any) {
	l.warnings = append(l.warnings, l.locate(field, fmt.Sprintf(format, args...)).String())
}
