package config

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

const (
	leastToken = 20
	// OwnToken is the name of the token in the state folder.
	OwnToken = "admin"
)

// adminTokens are the tokens that the file names.
func (l *loader) adminTokens() (tokens []AdminToken) {
	seen := map[string]string{}
	misnamed := false
	for _, name := range slices.Sorted(maps.Keys(l.top.AdminTokens)) {
		spec, field := l.top.AdminTokens[name], "admin_tokens"
		switch {
		case !routeName.MatchString(name):
			misnamed = true
			continue
		case name == OwnToken:
			l.fault(field+"."+name, "is the name of the token in the state folder; take another")
		}
		field += "." + name + ".token"
		if spec.Token == nil {
			l.fault(field, "is missing: a random text of at least %d characters, or file:/path", leastToken)
			continue
		}
		token := strings.TrimSpace(l.secret(field, *spec.Token))
		switch {
		case token == "": // said already
		case len(token) < leastToken:
			l.fault(field, "has fewer than %d characters; `openssl rand -hex 32` makes a good one", leastToken)
		case seen[token] != "":
			l.fault(field, "is that of %s too; who decided could not be told", seen[token])
		}
		seen[token] = name
		tokens = append(tokens, AdminToken{Name: name, Token: token, ReadOnly: spec.ReadOnly})
	}
	if misnamed { // said last: a fault of all tokens would hide those of each
		l.faults = append(l.faults, l.locate("admin_tokens", "has a name that is not 1 to 64 letters, digits, - and _"))
	}
	return tokens
}

// encryptionKeys are the keys that the file names, in its order.
func (l *loader) encryptionKeys() (keys []EncryptionKey) {
	seen := map[string]bool{}
	for i, spec := range l.top.EncryptionKeys {
		field := item("encryption_keys", i)
		key := EncryptionKey{ID: value(spec.ID)}
		switch {
		case !routeName.MatchString(key.ID) || len(key.ID) > 32:
			l.fault(field+".id", "must be 1 to 32 letters, digits, - and _")
		case seen[key.ID]:
			l.fault(field+".id", "is that of an earlier key too")
		}
		seen[key.ID] = true
		if spec.Key == nil {
			l.fault(field+".key", "is missing: 32 random bytes in base64, or file:/path")
			continue
		}
		text := strings.TrimSpace(l.secret(field+".key", *spec.Key))
		raw, err := base64.StdEncoding.DecodeString(text)
		switch {
		case text == "": // said already
		case err != nil || len(raw) != len(key.Key):
			l.fault(field+".key", "must be 32 bytes in base64; `openssl rand -base64 32` makes them")
		}
		copy(key.Key[:], raw)
		keys = append(keys, key)
	}
	return keys
}
