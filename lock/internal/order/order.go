// Package order puts the changes of a batch in the one order in which all
// transactions lock their rows, so that none wait for each other.
package order

import (
	"bytes"
	"cmp"
	"slices"

	"oncegate/lock"
)

// Of returns the places of a batch in the order of their keys.
func Of(batch []lock.Change) []int {
	places := make([]int, len(batch))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return compare(&batch[a].Next.Key, &batch[b].Next.Key) })
	return places
}

func compare(a, b *lock.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Scope, b.Scope), bytes.Compare(a.Digest[:], b.Digest[:]))
}
