package keyextract

import "fmt"

// maxItems bounds the items of a batch.
const maxItems = 10_000

// wildcard stands in Spec.Each for every item of an array on the way.
const wildcard = "*"

// items returns the items of a batch.
func (r *Rules) items(doc *Document) ([]item, *Error) {
	if r.eachXML != nil {
		elements, err := doc.xmlBody()
		if err != nil {
			return nil, err.at(r.label)
		}
		found, err := itemsXML(elements, r.eachXML)
		if err != nil {
			return nil, err.at(r.label)
		}
		items := make([]item, len(found))
		for i, at := range found {
			items[i] = item{elements: elements, at: at}
		}
		return items, nil
	}
	tree, err := doc.jsonBody()
	if err != nil {
		return nil, err.at(r.label)
	}
	found, err := tree.items(r.each)
	if err != nil {
		return nil, err.at(r.label)
	}
	items := make([]item, len(found))
	for i, at := range found {
		items[i] = item{tree: tree, at: at}
	}
	return items, nil
}

// itemsXML returns the indexes of a batch's elements: all at the path's end, the
// way to which is one.
func itemsXML(elements []element, path []string) ([]int, *Error) {
	last := len(path) - 1
	parent, err := findXML(elements, -1, path[:last])
	if err != nil {
		return nil, err
	}
	var found []int
	for i := range elements {
		if parent == nowhere || elements[i].parent != parent || elements[i].name != path[last] {
			continue
		}
		if len(found) == maxItems {
			return nil, malformed("a batch of more than %d items", maxItems)
		}
		found = append(found, i)
	}
	if len(found) == 0 {
		return nil, &Error{Kind: Missing, Detail: "no such element"}
	}
	return found, nil
}

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

// A batch is a delivery's items, whose keys are read one by one.
type batch struct {
	rules  *Rules
	doc    *Document
	items  []item
	shared []Value // the parts of the key that are the same for every item
}

func (r *Rules) batch(doc *Document) (*batch, *Error) {
	items, err := r.items(doc)
	if err != nil {
		return nil, err
	}
	b := &batch{rules: r, doc: doc, items: items, shared: make([]Value, len(r.key))}
	for i, p := range r.key {
		if p.readsItem() {
			continue
		}
		if b.shared[i], err = p.readForKey(doc, item{}); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// key returns the key of the n-th item. Errors count items from 1 on.
func (b *batch) key(n int) (string, *Error) {
	key, err := keyText(b.doc, b.items[n], b.rules.key, b.shared)
	if err == nil && key == "" {
		err = noPart("key")
	}
	if err != nil {
		return "", &Error{Kind: err.Kind, Place: err.Place, Detail: fmt.Sprintf("item %d: %s", n+1, err.Detail)}
	}
	return key, nil
}
