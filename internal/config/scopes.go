package config

import "reflect"

// checkScopes warns of routes that share claims and would do different things
// with them.
func (l *loader) checkScopes(routes []*Route) {
	first := map[string]*Route{} // by scope
	for _, r := range routes {
		if r.Mode != ModeEnforce {
			continue
		}
		other, shared := first[r.Scope]
		if !shared {
			first[r.Scope] = r
			continue
		}
		field := "routes." + r.Name + "."
		if r.Provider != other.Provider {
			l.warn(field+"scope", "is that of route %s too, which has another provider: where IDs of the two are equal, the later event is taken for a duplicate and never reaches the app", other.Name)
		}
		if r.OnUnknown != other.OnUnknown || r.Attempts != other.Attempts || !reflect.DeepEqual(r.Witness, other.Witness) {
			l.warn(field+"on_unknown", "or what belongs to it differs from that of route %s, which shares its claims: whichever of them sees an event next decides whether it runs again; say the same on both", other.Name)
		}
	}
}
