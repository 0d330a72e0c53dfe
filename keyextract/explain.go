package keyextract

// A Found says of one part of the rules what stands at its place, for a person
// who wants to know where a key comes from, or why there is none.
type Found struct {
	// Of is "key", "guard" or "tag " and its name.
	Of string
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

// Explain says what each part of the rules finds. Of a batch it looks at the
// first item. Values of parts with As: sha256 are digests here too.
func (r *Rules) Explain(doc *Document) []Found {
	var all []Found
	from, failed := r.firstItem(doc)
	if failed != nil {
		all = append(all, Found{Of: "key", Place: r.label, Err: failed})
	} else {
		for _, p := range r.key {
			all = append(all, p.explain("key", doc, from))
		}
	}
	for _, p := range r.guard {
		all = append(all, p.explain("guard", doc, item{}))
	}
	for _, tag := range r.tags {
		all = append(all, tag.part.explain("tag "+tag.name, doc, item{}))
	}
	return all
}

// firstItem returns the first item of a batch; the zero item, which is the whole
// body, where deliveries are none.
func (r *Rules) firstItem(doc *Document) (item, *Error) {
	if r.label == "" {
		return item{}, nil
	}
	items, err := r.items(doc)
	if err != nil {
		return item{}, err
	}
	return items[0], nil
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
