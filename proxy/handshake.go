package proxy

import (
	"slices"

	"oncegate/internal/config"
)

// handshake reports whether a verified delivery is one of the provider's
// handshakes, which reach the app each time and are never claimed.
func (p *passage) handshake() bool { return p.handshakeName(false) != "" }

// unsignedHandshake reports whether it is one of those that may come without a
// signature: only those that the route names, in exactly that shape.
func (p *passage) unsignedHandshake() bool {
	return p.r.mayBeUnsigned(p.req.Method) && p.handshakeName(true) != ""
}

// mayBeUnsigned reports whether a handshake with this method may come without a
// signature.
func (r *route) mayBeUnsigned(method string) bool {
	return slices.ContainsFunc(r.Handshakes, func(h config.Handshake) bool {
		return h.Unsigned && slices.Contains(h.Methods, method)
	})
}

// handshakeName returns the name of the handshake whose shape the delivery has;
// empty: none.
func (p *passage) handshakeName(unsigned bool) string {
	for _, hs := range p.r.Handshakes {
		if unsigned && !hs.Unsigned || !slices.Contains(hs.Methods, p.req.Method) {
			continue
		}
		// What can't be read in one certain way has not this exact shape; nor has
		// what is JSON here and a form, with other contents, to the app, or is
		// compressed, which PHP doesn't undo.
		if unsigned && (hs.When.ReadsJSON() && p.doc.IsForm() || len(p.delivery.Codings()) > 0) {
			continue
		}
		if holds, err := hs.When.Holds(p.doc); err == nil && holds {
			return hs.Name
		}
	}
	return ""
}
