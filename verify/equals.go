package verify

import (
	"crypto/subtle"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pinned are places that must hold one of some values: what a signature alone
// doesn't say, such as whose topic it was.
type pinned []pin

type pin struct {
	place  place
	values []string
}

func compileEquals(equals, params map[string]string) (pinned, error) {
	var all pinned
	for _, name := range slices.Sorted(maps.Keys(equals)) {
		at, err := parsePlace(name)
		if err != nil {
			return nil, fmt.Errorf("equals: %w", err)
		}
		text := expandParams(equals[name], params)
		values := strings.Fields(text)
		if len(values) == 0 || strings.Contains(text, "{param:") {
			return nil, fmt.Errorf("equals: %s: a parameter is not set", name)
		}
		all = append(all, pin{at, values})
	}
	return all, nil
}

// check refuses a delivery of which one place holds something else.
func (all pinned) check(s *scope) error {
	for _, p := range all {
		text, err := p.place.one(s)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.values, func(v string) bool { return subtle.ConstantTimeCompare([]byte(v), []byte(text)) == 1 }) {
			return &Error{Kind: Mismatch, Place: p.place.String(), Detail: "not what the route is set to"}
		}
	}
	return nil
}
