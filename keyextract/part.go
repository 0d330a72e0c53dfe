package keyextract

import (
	"net/url"
	"regexp"
	"slices"
)

// A place is where a part's value stands.
type place uint8

const (
	inJSON place = iota + 1
	inHeader
	inQuery
	inForm
	inFormJSON
	inXML
	inPath
	isMethod
	isConst
	isDigest
	isFirst
)

// A part is a compiled Part.
type part struct {
	in       place
	label    string   // as configured, for errors: "json /id"
	name     string   // header, field or constant
	path     []string // JSON pointer, or element names
	field    []string // a field's name as PHP understands it
	pattern  *regexp.Regexp
	first    []*part
	optional bool
	inItem   bool // in a batch's item, not the whole body
	as       string
}

// An item is the part of a batch that a key is read from; the zero item is the
// whole body.
type item struct {
	tree     *jsonTree
	elements []element // of an XML batch
	at       int
}

// read returns the part's value; the zero Value where it is absent, null or
// blank.
func (p *part) read(doc *Document, from item) (Value, *Error) {
	v, err := p.find(doc, from)
	if err == nil && p.as == asSFString && v.Kind == Text {
		var s string
		if s, err = sfString(v.Text); err == nil {
			v = textValue(s)
		}
	}
	if err != nil {
		return Value{}, err.at(p.label)
	}
	switch {
	case p.as == asText && v.Kind == Number:
		v.Kind = Text
	case p.as == asSHA256 && v.usable():
		v = Value{Kind: Text, Text: digestText(appendKeyText(nil, v))}
	}
	return v, nil
}

func (p *part) find(doc *Document, from item) (Value, *Error) {
	d := doc.delivery
	switch p.in {
	case inJSON:
		return p.findJSON(doc, from)
	case inFormJSON:
		tree, err := doc.formJSON(p.name, p.field)
		if err != nil || tree == nil {
			return Value{}, absentIfEmpty(err)
		}
		return tree.lookUp(0, p.path)
	case inHeader:
		s, err := readHeader(d.Header, p.name)
		return textValue(s), err
	case inQuery:
		fields, err := doc.queryFields()
		if err != nil {
			return Value{}, err
		}
		return readField(fields, p.field)
	case inForm:
		return doc.formField(p.field)
	case inXML:
		if p.inItem {
			return readXML(from.elements, from.at, p.path)
		}
		elements, err := doc.xmlBody()
		if err != nil {
			return Value{}, absentIfEmpty(err)
		}
		return readXML(elements, -1, p.path)
	case inPath:
		if err := doc.wholeTarget(); err != nil {
			return Value{}, err
		}
		return p.findPath(d.RawPath())
	case isMethod:
		return textValue(d.Method), nil
	case isDigest:
		return Value{Kind: Text, Text: digestText(d.Body)}, nil
	case isFirst:
		return p.findFirst(doc, from)
	default: // isConst
		return Value{Kind: Text, Text: p.name}, nil
	}
}

func (p *part) findJSON(doc *Document, from item) (Value, *Error) {
	if p.inItem {
		return from.tree.lookUp(from.at, p.path)
	}
	tree, err := doc.jsonBody()
	if err != nil {
		return Value{}, absentIfEmpty(err)
	}
	return tree.lookUp(0, p.path)
}

func (t *jsonTree) lookUp(from int, pointer []string) (Value, *Error) {
	i, ok, err := t.find(from, pointer)
	if err != nil || !ok {
		return Value{}, err
	}
	return t.value(i)
}

func (p *part) findPath(raw string) (Value, *Error) {
	groups := p.pattern.FindStringSubmatch(raw)
	if groups == nil {
		return Value{}, nil
	}
	plain, err := url.PathUnescape(groups[1])
	if err != nil {
		return Value{}, malformed("a broken percent escape in the path")
	}
	return textValue(plain), nil
}

// findFirst returns the first text or number. Where there is none, it returns
// the first boolean or container, if any: something stands there that is no
// value, which is more than being absent.
func (p *part) findFirst(doc *Document, from item) (Value, *Error) {
	var other Value
	for _, alternative := range p.first {
		v, err := alternative.read(doc, from)
		if err != nil || v.usable() {
			return v, err
		}
		if other.Kind == 0 {
			other = v
		}
	}
	return other, nil
}

// isFixed reports whether the part's value may be the same for every delivery of
// a route, whatever event it carries: a route has one path.
func (p *part) isFixed() bool {
	return p.in == isConst || p.in == isMethod || p.in == inPath || slices.ContainsFunc(p.first, (*part).isFixed)
}

// usable reports whether the value can be part of a key.
func (v Value) usable() bool { return v.Kind == Text || v.Kind == Number }

// absentIfEmpty lets an empty body count as one in which everything is absent.
func absentIfEmpty(err *Error) *Error {
	if err != nil && err.Kind == Missing {
		return nil
	}
	return err
}
