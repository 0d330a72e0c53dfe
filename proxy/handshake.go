package proxy

import "slices"

// handshake reports whether a verified delivery is one of the provider's
// handshakes, which reach the app each time and are never claimed.
func (p *passage) handshake() bool { return p.matchesHandshake(false) }

// unsignedHandshake reports whether it is one of those that may come without a
// signature: only those that the route names, in exactly that shape.
func (p *passage) unsignedHandshake() bool {
	return p.r.unsignedHandshakes && p.matchesHandshake(true)
}

func (p *passage) matchesHandshake(unsigned bool) bool {
	for _, hs := range p.r.Handshakes {
		if unsigned && !hs.Unsigned || len(hs.Methods) > 0 && !slices.Contains(hs.Methods, p.req.Method) {
			continue
		}
		// What can't be read in one certain way has not this exact shape.
		if holds, err := hs.When.Holds(p.doc); err == nil && holds {
			return true
		}
	}
	return false
}
