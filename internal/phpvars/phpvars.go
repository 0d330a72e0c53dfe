// Package phpvars says which names are one and the same to PHP: fields of a
// query or form that become the same variable, headers that become the same
// entry of $_SERVER. What is read under one name here must not be something else
// to the app.
package phpvars

import "strings"

// AnyItem is the index of a[], which PHP chooses.
const AnyItem = "[]"

// Name returns a field's name as PHP understands it: the variable, then the
// indexes into it, so that a.b[c] is {"a_b", "c"}; nil where PHP drops the
// field. It mirrors php_register_variable_ex in PHP's main/php_variables.c.
func Name(s string) []string {
	s = strings.TrimLeft(s, " ")
	s, _, _ = strings.Cut(s, "\x00")
	base, rest, nested := strings.Cut(s, "[")
	if base == "" {
		return nil
	}
	name := []string{fold.Replace(base)}
	for nested {
		at := rest
		if at != "" && strings.IndexByte(" \t\n\v\f\r", at[0]) >= 0 {
			at = at[1:]
		}
		if strings.HasPrefix(at, "]") {
			name, rest = append(name, AnyItem), at[1:]
		} else {
			index, after, closed := strings.Cut(rest, "]")
			if !closed {
				if len(name) == 1 {
					return []string{fold.Replace(s)}
				}
				return name
			}
			name, rest = append(name, index), after
		}
		rest, nested = strings.CutPrefix(rest, "[")
	}
	return name
}

var fold = strings.NewReplacer(" ", "_", ".", "_", "[", "_")

// Overlap reports whether setting one of two names can set the other, or a part
// of it, or something that it is a part of.
func Overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && !(a[i] == AnyItem && isDigits(b[i])) && !(b[i] == AnyItem && isDigits(a[i])) {
			return false
		}
	}
	return len(a) > 0 && len(b) > 0
}

// MediaType returns what PHP takes for the type in a Content-Type, in lower case:
// it looks no further, whatever parameters follow.
func MediaType(contentType string) string {
	if end := strings.IndexAny(contentType, ";, "); end >= 0 {
		contentType = contentType[:end]
	}
	return strings.ToLower(contentType)
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// SameHeader reports whether two header names become the same CGI variable.
func SameHeader(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if cgiByte(a[i]) != cgiByte(b[i]) {
			return false
		}
	}
	return true
}

func cgiByte(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return c - 'a' + 'A'
	case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return c
	}
	return '_'
}
