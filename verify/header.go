package verify

import (
	"net/http"
	"slices"
	"strings"

	"oncegate/internal/phpvars"
)

// maxHeaderBytes bounds what is read of the header lines that carry
// signatures, all lines of one scheme together.
const maxHeaderBytes = 8 << 10

// oneHeader returns the value of a header that may stand once only. What is
// signed has to be one certain text, so two lines are refused, and with them a
// name that is the same to PHP (X_Id beside X-Id).
func oneHeader(h http.Header, name string) (string, error) {
	name = http.CanonicalHeaderKey(name)
	lines := h[name]
	for other := range h {
		if other != name && phpvars.SameHeader(other, name) {
			return "", &Error{Kind: Malformed, Place: "header " + name, Detail: "has beside it, or instead of it, one whose name differs only in punctuation"}
		}
	}
	switch {
	case len(lines) == 0 || len(lines) == 1 && lines[0] == "":
		return "", errAbsent
	case len(lines) > 1:
		return "", &Error{Kind: Malformed, Place: "header " + name, Detail: "stands twice"}
	case len(lines[0]) > maxHeaderBytes:
		return "", &Error{Kind: Malformed, Place: "header " + name, Detail: "longer than 8 KiB"}
	}
	return lines[0], nil
}

// headerLines returns the lines of all headers with these names, in the order
// of the names. A name that ends in * stands for all that begin so.
func headerLines(h http.Header, names []string) ([]string, error) {
	var lines []string
	for _, name := range names {
		prefix, wild := strings.CutSuffix(name, "*")
		if !wild {
			lines = append(lines, h.Values(name)...)
			continue
		}
		prefix = http.CanonicalHeaderKey(prefix)
		var found []string
		for have := range h {
			if strings.HasPrefix(have, prefix) {
				found = append(found, have)
			}
		}
		slices.Sort(found)
		for _, have := range found {
			lines = append(lines, h[have]...)
		}
	}
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if size > maxHeaderBytes {
		return nil, &Error{Kind: Malformed, Place: "header " + names[0], Detail: "longer than 8 KiB"}
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }), nil
}

// listedHeaders returns "name:value" for every header that the header `list`
// names, joined by semicolons, names in lower case. The list names itself and
// at most 64 headers.
func listedHeaders(r *request, list string) (string, error) {
	text, err := oneHeader(r.Header, list)
	if err != nil {
		return "", err
	}
	names := strings.Split(text, ",")
	if len(names) > 64 || !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, list) }) {
		return "", &Error{Kind: Malformed, Place: "header " + list, Detail: "more than 64 names, or its own is not among them"}
	}
	var b strings.Builder
	for i, name := range names {
		value, err := oneHeader(r.Header, name)
		if err != nil {
			return "", missing(segment{kind: "header", arg: http.CanonicalHeaderKey(list)}, err)
		}
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(strings.ToLower(name) + ":" + value)
	}
	return b.String(), nil
}

// absent are headers that may not stand beside a signature.
type absent []string

// leaveOut takes the headers out of a sample, which holds those of every
// alternative.
func (a absent) leaveOut(s *signing) {
	if !s.marks {
		return
	}
	for _, name := range a {
		s.d.Header.Del(name)
	}
}

func (a absent) check(h http.Header) error {
	for _, name := range a {
		if len(h.Values(name)) > 0 {
			return &Error{Kind: Malformed, Place: "header " + name, Detail: "has no place beside this signature"}
		}
	}
	return nil
}
