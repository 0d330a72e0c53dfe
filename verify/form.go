package verify

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"

	"oncegate/internal/phpvars"
)

// A field is one field of a form or query, decoded, and the variable that PHP
// makes of it.
type field struct {
	name, value string
	variable    []string
}

// formFields are a form's fields in the order in which they were sent.
type formFields struct {
	fields []field
	err    error
}

// formValue returns the one value of a form field.
func (r *request) formValue(name string) (string, error) {
	fields, err := r.formFields()
	if err != nil {
		return "", err
	}
	return single(fields, name, "form field ")
}

// queryValue returns the one value of a parameter of the target's query.
func (r *request) queryValue(name string) (string, error) {
	fields, err := splitForm(r.RawQuery(), "query")
	if err != nil {
		return "", err
	}
	return single(fields, name, "query parameter ")
}

// single returns the value of the one field of that name. Beside it, or instead of
// it, there may be none that sets the same variable in PHP: the app would see
// another value than the one that is signed.
func single(fields []field, name, kind string) (string, error) {
	value, found := "", false
	variable := phpvars.Name(name)
	for _, f := range fields {
		same := f.name == name
		if !same && !phpvars.Overlap(f.variable, variable) {
			continue
		}
		if found || !same {
			return "", &Error{Kind: Malformed, Place: kind + name, Detail: "stands twice, or beside a field that is the same to PHP"}
		}
		value, found = f.value, true
	}
	if !found {
		return "", errAbsent
	}
	return value, nil
}

// formFields returns the body's fields, urlencoded or multipart as its content
// type says. Files are no fields.
func (r *request) formFields() ([]field, error) {
	if r.form == nil {
		fields, err := r.parseForm()
		r.form = &formFields{fields, err}
	}
	return r.form.fields, r.form.err
}

func (r *request) parseForm() ([]field, error) {
	if err := r.plainBody(); err != nil {
		return nil, err
	}
	text := r.Header.Get("Content-Type")
	if phpvars.MediaType(text) == "application/x-www-form-urlencoded" {
		return splitForm(string(r.Body), "form")
	}
	kind, params, err := mime.ParseMediaType(text)
	if err == nil && kind == "multipart/form-data" && params["boundary"] != "" {
		return splitMultipart(r.Body, params["boundary"])
	}
	return nil, &Error{Kind: Malformed, Place: "body", Detail: "Content-Type is no form's"}
}

func splitForm(text, at string) ([]field, error) {
	if strings.Count(text, "&") >= maxFields {
		return nil, &Error{Kind: Malformed, Place: at, Detail: "more than 1000 fields"}
	}
	var fields []field
	for pair := range strings.SplitSeq(text, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		n, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if err := errors.Join(err1, err2); err != nil {
			return nil, &Error{Kind: Malformed, Place: at, Detail: "not urlencoded"}
		}
		fields = append(fields, field{n, v, phpvars.Name(n)})
	}
	return fields, nil
}

func splitMultipart(body []byte, boundary string) ([]field, error) {
	malformed := func(err error) ([]field, error) {
		return nil, &Error{Kind: Malformed, Place: "body", Detail: "no multipart form", Err: err}
	}
	reader := multipart.NewReader(bytes.NewReader(body), boundary)
	var fields []field
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return fields, nil
		}
		if err != nil {
			return malformed(err)
		}
		if part.FormName() == "" || part.FileName() != "" {
			continue
		}
		if len(fields) == maxFields {
			return malformed(errors.New("more than 1000 fields"))
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return malformed(err)
		}
		fields = append(fields, field{part.FormName(), string(value), phpvars.Name(part.FormName())})
	}
}
