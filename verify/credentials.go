package verify

import "slices"

// Credentials returns the names of the headers that carry a secret as it is: a
// token, a user and password, a JSON Web Token. Whoever reads one there can send
// deliveries of their own, so that what is kept of a delivery goes without them.
func (v *Verifier) Credentials() []string {
	if v == nil {
		return nil
	}
	return credentials(v.schemes)
}

func credentials(schemes []scheme) (names []string) {
	for _, s := range schemes {
		var at place
		switch s := s.(type) {
		case *shared:
			at = s.place
		case *jsonToken:
			at = s.place
		case anyOf:
			names = append(names, credentials(s)...)
		}
		if at.kind == "header" && !slices.Contains(names, at.arg) {
			names = append(names, at.arg)
		}
	}
	return names
}
