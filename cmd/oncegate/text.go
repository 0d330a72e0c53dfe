package main

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// printable is a text that came from outside, as a terminal may show it: control
// characters as Unicode's pictures of them.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ':
			return '\u2400' + r
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
}
