package keyextract

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// CanSplit says why a batch can't be cut down to some of its items by [Rules.Only];
// nil: it can.
func (r *Rules) CanSplit() error {
	switch {
	case r.label == "":
		return errors.New("deliveries are no batches: there is no each")
	case r.eachXML != nil:
		return errors.New("the batch is XML, of which only the whole is forwarded")
	case len(r.each) > 1:
		return errors.New("each goes through several arrays, and what stands around an inner one could be left without items")
	case slices.ContainsFunc(r.key, (*part).readsDigest):
		return errors.New("the body's digest is part of the key, so every batch that is cut anew is all new events")
	}
	return nil
}

func (p *part) readsDigest() bool {
	return p.in == isDigest || slices.ContainsFunc(p.first, (*part).readsDigest)
}

// Only returns the body of a batch cut down to the items that have one of the
// keys, each once: the text of the items and of all that stands around them is
// the delivery's own, byte by byte, without its content coding. Counts and the
// like that the sender wrote around the items stay what they were.
//
// Where nothing is to be cut away, cut is false, and there is no body. Where a
// batch can't be split, or can't be read, there is an error, as of Extract.
func (r *Rules) Only(doc *Document, keys []string) (body []byte, cut bool, err error) {
	if err := r.CanSplit(); err != nil {
		return nil, false, err
	}
	b, failed := r.batch(doc)
	if failed != nil {
		return nil, false, failed
	}
	wanted := make(map[string]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	var kept []int
	for n, it := range b.items {
		key, failed := b.key(n)
		if failed != nil {
			return nil, false, failed
		}
		if wanted[key] {
			delete(wanted, key)
			kept = append(kept, it.at)
		}
	}
	if len(kept) == len(b.items) {
		return nil, false, nil
	}
	tree, array := b.items[0].tree, b.items[0].at-1 // a container stands directly before what it contains
	begin, end := tree.extent(array)
	src := tree.src
	body = append(make([]byte, 0, len(src)), src[:begin+1]...)
	for i, at := range kept {
		if i > 0 {
			body = append(body, ',')
		}
		from, to := tree.extent(at)
		body = append(body, src[from:to]...)
	}
	return append(body, src[end-1:]...), true, nil
}

// extent returns where in the source the value at i begins and ends.
func (t *jsonTree) extent(i int) (begin, end int) {
	begin = int(t.tape[i].start)
	if c := t.first(i); c != '{' && c != '[' {
		return begin, begin + int(t.tape[i].span)
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(t.src[begin:]),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	// The text was read once before, and is JSON.
	_ = dec.SkipValue()
	return begin, begin + int(dec.InputOffset())
}
