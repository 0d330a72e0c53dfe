package redislock

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"oncegate/lock"
)

// A record lies under <prefix>{7f}:<namespace>:<scope>:<digest>. What is in
// braces, the digest's first byte, says which slot of a cluster holds it: one
// of 256, so that there can be beside the records of each slot the set of
// those that are running or unknown, under <prefix>{7f}:<namespace>, which one
// script changes together with them.

// tags are the 256 slots' tags.
const tags = 256

func tag(first byte) string { return "{" + hex.EncodeToString([]byte{first}) + "}:" }

func (s *Store) key(k *lock.Key) string {
	return s.openKey(k.Namespace, k.Digest[0]) + ":" + escaped(k.Scope) + ":" + base64.RawURLEncoding.EncodeToString(k.Digest[:])
}

// openKey is the key of the set of what is open.
func (s *Store) openKey(namespace string, first byte) string {
	return s.options.Prefix + tag(first) + escaped(namespace)
}

// parseKey is the inverse of key; it fails for what is none.
func (s *Store) parseKey(text string) (k lock.Key, ok bool) {
	text, ok = strings.CutPrefix(text, s.options.Prefix)
	parts := strings.Split(text, ":")
	if !ok || len(parts) != 4 {
		return lock.Key{}, false
	}
	digest, err := base64.RawURLEncoding.DecodeString(parts[3])
	if err != nil || len(digest) != len(k.Digest) {
		return lock.Key{}, false
	}
	return lock.Key{Namespace: unescaped(parts[1]), Scope: unescaped(parts[2]), Digest: lock.Digest(digest)}, true
}

// pattern matches the keys of a namespace's records, and no others but by way
// of letters that a pattern can't name.
func (s *Store) pattern(namespace string) string {
	return literal(s.options.Prefix) + "{??}:" + literal(escaped(namespace)) + ":*"
}

// literal quotes what a pattern would read as a sign.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}

func escaped(text string) string { return strings.NewReplacer("%", "%25", ":", "%3A").Replace(text) }

func unescaped(text string) string { return strings.NewReplacer("%25", "%", "%3A", ":").Replace(text) }
