package keyextract

import (
	"bytes"
	"mime"
	"strings"

	"oncegate/internal/delivery"
	"oncegate/internal/phpvars"
)

// A Document is a delivery made ready for reading. Each form of it (decoded
// body, JSON, form, query, XML) is made when it is first asked for, and once.
// It keeps the delivery and does not change it. One goroutine uses it at a time.
type Document struct {
	delivery *delivery.Delivery

	plain    once[[]byte] // the body with its content coding undone
	json     once[*jsonTree]
	form     once[[]field]
	query    once[[]field]
	xml      once[[]element]
	embedded map[string]*once[*jsonTree] // by form field
}

// Parse makes a delivery ready for reading. It reads nothing yet.
func Parse(d *delivery.Delivery) *Document { return &Document{delivery: d} }

// once keeps what was made, or why it could not be.
type once[T any] struct {
	made  bool
	value T
	err   *Error
}

func (o *once[T]) get(make func() (T, *Error)) (T, *Error) {
	if !o.made {
		o.value, o.err = make()
		o.made = true
	}
	return o.value, o.err
}

func (doc *Document) body() ([]byte, *Error) {
	return doc.plain.get(func() ([]byte, *Error) {
		return decodeBody(doc.delivery.Codings(), doc.delivery.Body)
	})
}

func (doc *Document) jsonBody() (*jsonTree, *Error) {
	return doc.json.get(func() (*jsonTree, *Error) {
		body, err := doc.body()
		if err != nil {
			return nil, err
		}
		return parseJSON(body)
	})
}

func (doc *Document) xmlBody() ([]element, *Error) {
	return doc.xml.get(func() ([]element, *Error) {
		body, err := doc.body()
		if err != nil {
			return nil, err
		}
		return parseXML(body)
	})
}

func (doc *Document) queryFields() ([]field, *Error) {
	return doc.query.get(func() ([]field, *Error) {
		if err := doc.wholeTarget(); err != nil {
			return nil, err
		}
		return parseURLEncoded(doc.delivery.RawQuery())
	})
}

// wholeTarget refuses a target that goes on behind a raw "#": nginx, for one, ends
// it there.
func (doc *Document) wholeTarget() *Error {
	if strings.Contains(doc.delivery.Target, "#") {
		return malformed("a raw # in the target")
	}
	return nil
}

// formFields reads the body as the form that its Content-Type says. Under any
// other type the app has no fields either.
func (doc *Document) formFields() ([]field, *Error) {
	return doc.form.get(func() ([]field, *Error) {
		lines := doc.delivery.Header["Content-Type"]
		boundary, isForm, err := formType(lines)
		if err != nil || !isForm {
			return nil, err
		}
		body, err := doc.body()
		if err != nil {
			return nil, err
		}
		if boundary != "" {
			return parseMultipart(body, boundary)
		}
		return parseURLEncoded(string(body))
	})
}

// formField returns the one field with this name. One that is found in a JSON text
// is malformed: the Content-Type, which hardly anybody signs, would say which of
// two events it is, and an app need not listen to it.
func (doc *Document) formField(name []string) (Value, *Error) {
	fields, err := doc.formFields()
	if err != nil {
		return Value{}, err
	}
	v, err := readField(fields, name)
	if err == nil && v.Kind != 0 && doc.looksJSON() {
		if _, notJSON := doc.jsonBody(); notJSON == nil {
			return Value{}, malformed("a form that is JSON, too")
		}
	}
	return v, err
}

// looksJSON reports whether the body begins as a JSON object, array or text does.
func (doc *Document) looksJSON() bool {
	body, err := doc.body()
	body = bytes.TrimLeft(body, " \t\r\n")
	return err == nil && len(body) > 0 && strings.IndexByte(`{["`, body[0]) >= 0
}

// IsForm reports whether PHP reads fields from the body, or may.
func (doc *Document) IsForm() bool {
	_, isForm, err := formType(doc.delivery.Header["Content-Type"])
	return isForm || err != nil
}

// formType reads the Content-Type of a form; the boundary is empty where it is
// urlencoded. Like PHP it looks no further than the type to know that it is a
// form, so that no spelling is a form to PHP and none to us.
func formType(lines []string) (boundary string, isForm bool, err *Error) {
	var kind string
	for _, line := range lines {
		switch name := phpvars.MediaType(line); name {
		case urlEncoded, multipart:
			kind = name
		}
	}
	if kind == "" {
		return "", false, nil
	}
	if len(lines) == 1 && kind == urlEncoded {
		return "", true, nil
	}
	parsed, params, parseErr := mime.ParseMediaType(lines[0])
	if len(lines) > 1 || parseErr != nil || parsed != kind {
		return "", false, malformed("a form whose Content-Type is broken or stands twice")
	}
	boundary = params["boundary"]
	if boundary == "" || boundary != phpBoundary(lines[0]) || strings.Count(strings.ToLower(lines[0]), "boundary") != 1 {
		return "", false, malformed("a multipart form without one certain boundary")
	}
	return boundary, true, nil
}

// phpBoundary returns what PHP takes for the boundary: what follows the first "="
// after the first "boundary", wherever that stands, with blanks and all.
func phpBoundary(contentType string) string {
	at := max(0, strings.Index(strings.ToLower(contentType), "boundary"))
	_, text, _ := strings.Cut(contentType[at:], "=")
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		text, _, _ = strings.Cut(quoted, `"`)
		return text
	}
	if end := strings.IndexAny(text, ",;"); end >= 0 {
		text = text[:end]
	}
	return text
}

const (
	urlEncoded = "application/x-www-form-urlencoded"
	multipart  = "multipart/form-data"
)

// formJSON reads the JSON text in a form field; the tree is nil where the field
// is absent or blank.
func (doc *Document) formJSON(field string, name []string) (*jsonTree, *Error) {
	if doc.embedded == nil {
		doc.embedded = make(map[string]*once[*jsonTree])
	}
	tree := doc.embedded[field]
	if tree == nil {
		tree = new(once[*jsonTree])
		doc.embedded[field] = tree
	}
	return tree.get(func() (*jsonTree, *Error) {
		v, err := doc.formField(name)
		if err != nil || v.Kind != Text {
			return nil, err
		}
		return parseJSON([]byte(v.Text))
	})
}
