package verify

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"oncegate/internal/delivery"
)

// Bounds on what is read out of a delivery that nobody vouches for yet.
const (
	maxFields = 1000   // form fields, query parameters
	maxItems  = 10_000 // signed items of one body
)

// A request is a delivery while it is being verified: what several schemes
// read out of its body is read once. It belongs to one goroutine.
type request struct {
	*delivery.Delivery
	trace *Trace // nil unless somebody wants an explanation

	docs map[string]document // by the form field that holds it; "" is the body
	form *formFields
	errs map[string]error
}

// A document is one JSON text, known to be valid and free of names that occur
// twice in one object.
type document struct{ raw jsontext.Value }

// json returns the body as JSON, or the text of a form field.
func (r *request) json(within string) (document, error) {
	if doc, ok := r.docs[within]; ok {
		return doc, r.errs[within]
	}
	doc, err := r.parseJSON(within)
	if r.docs == nil {
		r.docs, r.errs = map[string]document{}, map[string]error{}
	}
	r.docs[within], r.errs[within] = doc, err
	return doc, err
}

// plainBody refuses to read single values of a compressed body. The event key is
// read from what it becomes, and who signed some values of the one has signed
// nothing of the other.
func (r *request) plainBody() error {
	if codings := r.Codings(); len(codings) > 0 {
		return &Error{Kind: Malformed, Place: "header Content-Encoding", Detail: "no value is read from a compressed body (" + codings[0] + ")"}
	}
	return nil
}

func (r *request) parseJSON(within string) (document, error) {
	if err := r.plainBody(); err != nil {
		return document{}, err
	}
	text, at := r.Body, "body"
	if within != "" {
		at = "form field " + within
		value, err := r.formValue(within)
		if err != nil {
			return document{}, err
		}
		text = []byte(value)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !jsontext.Value(text).IsValid() {
		return document{}, &Error{Kind: Malformed, Place: at, Detail: "no JSON, or a name stands twice in one object"}
	}
	return document{raw: text}, nil
}

// errAbsent says that a place holds nothing: absent or null.
var errAbsent = errors.New("absent")

// text returns the string, the number's literal or the boolean at the pointer.
func (doc document) text(pointer string) (string, error) {
	raw, ok := doc.find(pointer)
	if !ok {
		return "", errAbsent
	}
	switch raw.Kind() {
	case 'n':
		return "", errAbsent
	case '"':
		b, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return "", &Error{Kind: Malformed, Place: "json " + pointer, Detail: "no valid string"}
		}
		return string(b), nil
	case '0', 't', 'f':
		return string(raw), nil
	}
	return "", &Error{Kind: Malformed, Place: "json " + pointer, Detail: "an object or array where a value has to be"}
}

// find returns the value that an RFC 6901 pointer names.
func (doc document) find(pointer string) (jsontext.Value, bool) {
	raw := bytes.TrimSpace(doc.raw)
	if pointer == "" || pointer == "#" {
		return raw, true
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var ok bool
		if raw, ok = child(raw, step); !ok {
			return nil, false
		}
	}
	return raw, true
}

// child returns a member of an object or an item of an array.
func child(raw jsontext.Value, step string) (jsontext.Value, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	switch open, err := dec.ReadToken(); {
	case err != nil:
		return nil, false
	case open.Kind() == '{':
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, false
			}
			wanted := name.String() == step
			value, err := dec.ReadValue()
			if err != nil {
				return nil, false
			}
			if wanted {
				return value, true
			}
		}
	case open.Kind() == '[':
		index, err := strconv.Atoi(step)
		if err != nil || strconv.Itoa(index) != step {
			return nil, false
		}
		for i := 0; dec.PeekKind() != ']'; i++ {
			value, err := dec.ReadValue()
			if err != nil {
				return nil, false
			}
			if i == index {
				return value, true
			}
		}
	}
	return nil, false
}

// items returns the items of the array at the pointer: at least one.
func (doc document) items(pointer string) ([]document, error) {
	raw, ok := doc.find(pointer)
	if !ok || raw.Kind() != '[' {
		return nil, &Error{Kind: Missing, Place: "json " + pointer, Detail: "no array of signed items"}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil, &Error{Kind: Malformed, Place: "json " + pointer, Err: err}
	}
	var items []document
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil || len(items) == maxItems {
			return nil, &Error{Kind: Malformed, Place: "json " + pointer, Detail: "no array of at most 10000 items", Err: err}
		}
		items = append(items, document{raw: value.Clone()})
	}
	if len(items) == 0 {
		return nil, &Error{Kind: Missing, Place: "json " + pointer, Detail: "an empty array has no signature"}
	}
	return items, nil
}
