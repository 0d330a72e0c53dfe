package verify

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// A place is where a text stands in a delivery. The zero place is none.
type place struct {
	kind string // header, json, form, query
	arg  string // a name or a pointer; for headers the first name
	all  []string
}

func (p place) String() string { return p.kind + " " + p.arg }

// onePlace makes a place of the one field that is set; none gives the zero
// place.
func onePlace(headers []string, header, json, form, query string) (place, error) {
	var found []place
	if header != "" {
		headers = []string{header}
	}
	if len(headers) > 0 {
		found = append(found, place{kind: "header", arg: http.CanonicalHeaderKey(headers[0]), all: headers})
	}
	if json != "" {
		if json != "#" && !strings.HasPrefix(json, "/") {
			return place{}, fmt.Errorf("json: %q is no JSON pointer", json)
		}
		found = append(found, place{kind: "json", arg: json})
	}
	if form != "" {
		found = append(found, place{kind: "form", arg: form})
	}
	if query != "" {
		found = append(found, place{kind: "query", arg: query})
	}
	switch len(found) {
	case 0:
		return place{}, nil
	case 1:
		return found[0], nil
	}
	return place{}, errors.New("header, json, form and query: only one of them says where to look")
}

// parsePlace reads "header:X" or "json:/x".
func parsePlace(text string) (place, error) {
	kind, arg, _ := strings.Cut(text, ":")
	switch {
	case arg == "":
	case kind == "header":
		return onePlace(nil, arg, "", "", "")
	case kind == "json":
		return onePlace(nil, "", arg, "", "")
	}
	return place{}, fmt.Errorf("%q is neither header:NAME nor json:POINTER", text)
}

// lines returns what stands at the place: several texts where it is a header
// with several lines.
func (p place) lines(s *scope) ([]string, error) {
	if p.kind == "header" {
		lines, err := headerLines(s.r.Header, p.all)
		if err == nil && len(lines) == 0 {
			err = &Error{Kind: Missing, Place: p.String()}
		}
		return lines, err
	}
	text, err := s.value(segment{kind: p.kind, arg: p.arg})
	if errors.Is(err, errAbsent) || err == nil && text == "" {
		return nil, &Error{Kind: Missing, Place: p.String()}
	}
	if err == nil && len(text) > maxHeaderBytes {
		err = &Error{Kind: Malformed, Place: p.String(), Detail: "longer than 8 KiB"}
	}
	return []string{text}, err
}

// one returns the one text that stands at the place.
func (p place) one(s *scope) (string, error) {
	if p.kind == "header" {
		text, err := oneHeader(s.r.Header, p.arg)
		if errors.Is(err, errAbsent) {
			err = &Error{Kind: Missing, Place: p.String()}
		}
		return text, err
	}
	lines, err := p.lines(s)
	if err != nil {
		return "", err
	}
	return lines[0], nil
}
