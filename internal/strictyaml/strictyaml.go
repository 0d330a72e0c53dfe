// Package strictyaml decodes YAML into plain structs and forgives nothing.
//
// A configuration that is half understood is worse than none: a misspelt key
// must not leave a check switched off. So every fault is found and reported, all
// of them at once, each with its line and its dotted field.
//
// # Use
//
//	root, faults := strictyaml.Parse(data)
//	if faults == nil {
//		faults = strictyaml.Decode(root, &into, strictyaml.Options{})
//	}
//
// The target is a struct whose fields carry `yaml:"name"` tags; fields without
// one are left alone, and `yaml:",inline"` takes in the fields of a struct
// within. Fields may be string, bool, integers, floats, time.Duration ("35d",
// "1h30m"), [Size] ("5MiB"), slices (where a single value is a list of one),
// map[string]T, structs, pointers to any of these (nil where the key is
// missing) and yaml.Node (the raw node, nothing checked or expanded).
//
// # What is refused
//
// Unknown keys (the nearest known one is suggested), keys given twice, keys
// without a value, values of another type, tags, anchors, aliases and merge
// keys, several documents, more than [MaxBytes] bytes, more than [MaxDepth]
// levels.
//
// # Secrets
//
// A fault never quotes a value, only the places where values stand: what was
// put into the wrong field may be a secret.
package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Fault is one thing that is wrong with a document.
type Fault struct {
	// File is where the document came from; empty where the caller has not said.
	File string
	// Line counts from 1; 0 where there is none.
	Line int
	// Field is the dotted path to the value, as in "routes.stripe.secrets[0]";
	// empty for the document as a whole.
	Field string
	// Msg says what is wrong and what to do, in one line.
	Msg string
}

// String returns "file:line: field: message", without the parts that are empty.
func (f Fault) String() string {
	var b strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		fmt.Fprintf(&b, "%s: ", f.File)
	case f.Line > 0:
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Msg)
	return b.String()
}

// Faults is everything that is wrong with a document. As an error it is one
// line a fault.
type Faults []Fault

// maxReported bounds the error's text; the rest is counted.
const maxReported = 100

// Error returns one line a fault.
func (fs Faults) Error() string {
	lines := make([]string, 0, min(len(fs), maxReported+1))
	for i, f := range fs {
		if i == maxReported {
			lines = append(lines, fmt.Sprintf("and %d more", len(fs)-i))
			break
		}
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults as an error, and nil where there are none. (A nil
// Faults in an error variable is not a nil error.)
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// Sort orders the faults by line; those without a line come last.
func (fs Faults) Sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Compare(a.Line, b.Line)
	})
}

// Options direct Decode.
type Options struct {
	// Field is put before the field of every fault, as in "routes.stripe".
	Field string
	// Expand, where it is not nil, is called on every string scalar, also on
	// one that becomes a number or a duration, and its result is decoded in its
	// place. Its error becomes a fault, so it must not hold a secret.
	Expand func(string) (string, error)
}
