package keyextract

// maxItems bounds the items of a batch.
const maxItems = 10_000

// wildcard stands in Spec.Each for every item of an array on the way.
const wildcard = "*"

// items returns the indexes of a batch's items. each is a pointer, cut at its
// wildcards.
func (t *jsonTree) items(each [][]string) ([]int, *Error) {
	arrays := []int{0}
	for _, pointer := range each {
		var found []int
		for _, from := range arrays {
			array, ok, err := t.find(from, pointer)
			if err != nil {
				return nil, err
			}
			if !ok || t.first(array) != '[' || t.tape[array].span == 1 {
				return nil, &Error{Kind: Missing, Detail: "no array with items"}
			}
			for i, end := array+1, t.next(array); i < end; i = t.next(i) {
				if len(found) == maxItems {
					return nil, malformed("a batch of more than %d items", maxItems)
				}
				found = append(found, i)
			}
		}
		arrays = found
	}
	return arrays, nil
}

// cutAtWildcards splits a pointer into those that lead from one array's item to
// the next array.
func cutAtWildcards(pointer []string) [][]string {
	each := [][]string{nil}
	for _, name := range pointer {
		if name == wildcard {
			each = append(each, nil)
			continue
		}
		last := len(each) - 1
		each[last] = append(each[last], name)
	}
	return each
}
