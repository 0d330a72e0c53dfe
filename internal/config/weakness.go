package config

import (
	"slices"
	"strings"
)

// weaknesses are the names that store.accept_weak knows, by the kind of store that
// may have them. A test holds them to what the stores say.
var weaknesses = map[string][]string{
	"":         {"retention"}, // of any
	"sqlite":   {"filesystem"},
	"postgres": {"fsync", "full_page_writes", "isolation", "read_only", "row_security", "subscription", "synchronous_commit", "unlogged"},
	"mysql":    {"binlog", "doublewrite", "engine", "flush", "packet", "read_only"},
	"redis":    {"eviction", "fsync", "persistence", "read_only"},
}

// Weaknesses returns the names that store.accept_weak knows for a kind of store.
func Weaknesses(kind string) []string {
	names := slices.Concat(weaknesses[""], weaknesses[kind])
	slices.Sort(names)
	return slices.Compact(names)
}

// checkWeaknesses refuses names that no store has, since what is misspelt would
// accept nothing. Another kind's do no harm: one list may serve several places.
func (l *loader) checkWeaknesses(kind string) {
	known := map[string]bool{}
	for _, names := range weaknesses {
		for _, name := range names {
			known[name] = true
		}
	}
	for i, name := range l.store.AcceptWeak {
		if !known[name] {
			l.fault(item("store.accept_weak", i), "is no weakness that a store may have; here they are %s", strings.Join(Weaknesses(kind), ", "))
		}
	}
}

// accepts reports whether a weakness is accepted by name.
func (s Store) accepts(weakness string) bool { return slices.Contains(s.AcceptWeak, weakness) }
