package verify

import (
	"reflect"
	"slices"
)

// fieldsOf returns the fields that have a meaning with a scheme. What is set
// beside them is a mistake: somebody believes that it is checked.
func fieldsOf(word string) []string {
	place := []string{"header", "absent", "json", "form", "query", "format", "within", "secrets"}
	switch word {
	case "hmac", "hash", "ed25519", "ecdsa", "rsa":
		fields := append(place, "list", "signed", "lower", "fields", "each", "body_hash", "time", "equals", "port", "decode", "encoding")
		if word == "rsa" {
			fields = append(fields, "keys")
		}
		return fields
	case "token":
		return place
	case "basic":
		return []string{"absent", "secrets"}
	case "jwt":
		return []string{"header", "format", "encoding", "secrets", "keys", "claims"}
	}
	return nil
}

// idle returns the fields that are set and have no meaning with the scheme.
func (s *Spec) idle(word string) (names []string) {
	v, known := reflect.ValueOf(*s), fieldsOf(word)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name != word && !v.Field(i).IsZero() && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}
