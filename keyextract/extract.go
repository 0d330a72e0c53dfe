package keyextract

import "fmt"

// Extract reads what the rules ask for. Its error is an *Error, and there is one
// only where a key or the guard can't be read: tags and named values that can't
// be read are left out.
func (r *Rules) Extract(doc *Document) (Values, error) {
	var v Values
	var err *Error
	if v.Keys, err = r.keys(doc); err != nil {
		return Values{}, err
	}
	if v.Guard, err = r.guardText(doc); err != nil {
		return Values{}, err
	}
	for _, tag := range r.tags {
		if value, err := tag.part.read(doc, item{}); err == nil && value.readable() {
			v.Tags = append(v.Tags, tag.name+"="+tagText(value.Text))
		}
	}
	for _, n := range r.named {
		if value, err := n.part.read(doc, item{}); err == nil && value.readable() {
			if v.Named == nil {
				v.Named = make(map[string]Value, len(r.named))
			}
			v.Named[n.name] = value
		}
	}
	return v, nil
}

// readable reports whether the value has a text.
func (v Value) readable() bool { return v.usable() || v.Kind == Bool }

func (r *Rules) keys(doc *Document) ([]string, *Error) {
	if len(r.key) == 0 {
		return nil, nil
	}
	if r.label != "" {
		return r.batchKeys(doc)
	}
	key, err := keyText(doc, item{}, r.key, nil)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, noPart("key")
	}
	return []string{key}, nil
}

func (r *Rules) guardText(doc *Document) (string, *Error) {
	return keyText(doc, item{}, r.guard, nil)
}

// batchKeys returns the keys of the different items. One item without a key
// leaves the whole delivery without: it can't be taken apart.
func (r *Rules) batchKeys(doc *Document) ([]string, *Error) {
	batch, err := r.batch(doc)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(batch.items))
	keys := make([]string, 0, len(batch.items))
	for n := range batch.items {
		key, err := batch.key(n)
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// keyText reads the parts of one key and joins them; the text is empty where all
// are absent, and all may be, or all but those that are the same for each event. shared, where given, has the values of the parts
// that are the same for every item.
func keyText(doc *Document, from item, parts []*part, shared []Value) (string, *Error) {
	var few [4]Value
	values := few[:0]
	tells := false // something that differs from event to event is there
	for i, p := range parts {
		var v Value
		if shared != nil && !p.readsItem() {
			v = shared[i]
		} else {
			var err *Error
			if v, err = p.readForKey(doc, from); err != nil {
				return "", err
			}
		}
		tells = tells || v.usable() && !p.isFixed()
		values = append(values, v)
	}
	if !tells {
		return "", nil
	}
	text := joinKey(values)
	if len(text) > MaxKeyText {
		return "", &Error{Kind: Malformed, Place: "key", Detail: fmt.Sprintf("longer than %d bytes", MaxKeyText)}
	}
	return text, nil
}

// readForKey returns a text, a number or, where the part is optional, nothing.
func (p *part) readForKey(doc *Document, from item) (Value, *Error) {
	v, err := p.read(doc, from)
	if err != nil {
		return Value{}, err
	}
	if !v.usable() && !(p.optional && v.Kind == 0) {
		return Value{}, &Error{Kind: Missing, Place: p.label, Detail: v.describe()}
	}
	return v, nil
}

func noPart(place string) *Error {
	return &Error{Kind: Missing, Place: place, Detail: "all parts are absent"}
}

// describe says, for an error, why the value can't be part of a key.
func (v Value) describe() string {
	switch v.Kind {
	case Bool:
		return "a boolean"
	case container:
		return "an object or array"
	}
	return "absent, null or blank"
}
