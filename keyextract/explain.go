package keyextract

// An Explanation is what the rules find in a delivery, for a person who wants to
// know where a key comes from, or why there is none.
type Explanation struct {
	// Found are the parts in the order of the rules, of a batch those of its first
	// items.
	Found []Found
	// Items is how many items the batch has. 0: it can't be taken apart, or
	// deliveries are none.
	Items int
	// Keys are the keys of the items that were looked at, "" of one that has none.
	Keys []string
}

// A Found says of one part of the rules what stands at its place.
type Found struct {
	// Of is "key", "guard" or "tag " and its name.
	Of string
	// Item is the number, from 1 on, of the batch's item that it is a part of; 0:
	// of the whole delivery.
	Item int
	// Place is where the value was found, or was looked for: "json /id". Of a
	// part that names several places it is the first that has one.
	Place string
	// Value is what stands there. Its Kind is 0 where there is nothing, null or
	// blanks; an object or array has no Text.
	Value Value
	// Err is why it can't be read; nil where it can.
	Err *Error
}

// Usable reports whether the value can be part of a key.
func (f *Found) Usable() bool { return f.Err == nil && f.Value.usable() }

// Describe says what there is instead of a usable value.
func (f *Found) Describe() string {
	if f.Err != nil {
		return f.Err.sentinel().Error() + ": " + f.Err.Detail
	}
	return f.Value.describe()
}

// Explain says what each part of the rules finds. Of a batch it looks at so many
// items. Values of parts with As: sha256 are digests here too.
func (r *Rules) Explain(doc *Document, limit int) Explanation {
	var e Explanation
	if r.label == "" {
		for _, p := range r.key {
			e.Found = append(e.Found, p.explain("key", doc, item{}))
		}
	} else {
		r.explainItems(&e, doc, limit)
	}
	for _, p := range r.guard {
		e.Found = append(e.Found, p.explain("guard", doc, item{}))
	}
	for _, tag := range r.tags {
		e.Found = append(e.Found, tag.part.explain("tag "+tag.name, doc, item{}))
	}
	return e
}

func (r *Rules) explainItems(e *Explanation, doc *Document, limit int) {
	items, err := r.items(doc)
	if err != nil {
		e.Found = append(e.Found, Found{Of: "key", Place: r.label, Err: err})
		return
	}
	e.Items = len(items)
	for i, from := range items[:min(limit, len(items))] {
		for _, p := range r.key {
			f := p.explain("key", doc, from)
			f.Item = i + 1
			e.Found = append(e.Found, f)
		}
		key, err := keyText(doc, from, r.key, nil)
		if err != nil {
			key = ""
		}
		e.Keys = append(e.Keys, key)
	}
}

func (p *part) explain(of string, doc *Document, from item) Found {
	v, err := p.read(doc, from)
	f := Found{Of: of, Place: p.label, Value: v, Err: err}
	if p.in == isFirst {
		f.Place = ""
		for _, one := range p.first {
			tried := one.explain(of, doc, from)
			if tried.Err != nil || tried.Value.usable() {
				f.Place = tried.Place
				break
			}
			if f.Place != "" {
				f.Place += " or "
			}
			f.Place += tried.Place
		}
	}
	return f
}
