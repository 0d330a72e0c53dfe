package pglock

import (
	"bytes"
	"cmp"

	"oncegate/lock"
)

// A place is where a record lies in its namespace.
type place struct {
	scope  string
	digest []byte
}

func placeOf(c lock.Cursor) place { return place{scope: c.Scope, digest: bytes.Clone(c.Digest[:])} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.scope, q.scope), bytes.Compare(p.digest, q.digest))
}

// columnsOf returns the columns of places, as arrays for a statement.
func columnsOf(places []place) (scopes []string, digests [][]byte) {
	for _, p := range places {
		scopes, digests = append(scopes, p.scope), append(digests, p.digest)
	}
	return scopes, digests
}
