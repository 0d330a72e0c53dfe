package verify

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// check says what is wrong with the configuration.
func (f *Fields) check() error {
	if !slices.Contains([]string{"", "received", "sorted"}, f.Order) {
		return fmt.Errorf("fields.order: %q is neither received nor sorted", f.Order)
	}
	if !slices.Contains([]string{"", "form"}, f.Encode) {
		return fmt.Errorf("fields.encode: %q is not form", f.Encode)
	}
	return nil
}

// text writes the form's fields as the scheme signs them. A body without
// fields signs as nothing, so only an empty one may have none.
func (f *Fields) text(r *request) (string, error) {
	fields, err := r.formFields()
	if err != nil {
		return "", err
	}
	if f.Until != "" {
		if i := slices.IndexFunc(fields, func(fd field) bool { return fd.name == f.Until }); i >= 0 {
			if i != len(fields)-1 {
				// What follows is not signed, so nobody may rely on it.
				return "", &Error{Kind: Malformed, Place: "form", Detail: "fields follow the signature"}
			}
			fields = fields[:i]
		}
	}
	if f.Order == "sorted" {
		// Equal names stand in the order of their values, and a field that
		// stands twice with one value counts once.
		fields = slices.Clone(fields)
		slices.SortFunc(fields, func(a, b field) int {
			if c := strings.Compare(a.name, b.name); c != 0 {
				return c
			}
			return strings.Compare(a.value, b.value)
		})
		fields = slices.CompactFunc(fields, func(a, b field) bool { return a.name == b.name && a.value == b.value })
	}
	var b strings.Builder
	for _, fd := range fields {
		if slices.Contains(f.Except, fd.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(f.Join)
		}
		value := fd.value
		if f.Encode == "form" {
			value = formEncode(value)
		}
		b.WriteString(fd.name + f.Pair + value)
	}
	return b.String(), nil
}

// formEncode is PHP's urlencode: space is +, and of the marks only - _ . stand
// as they are.
func formEncode(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "~", "%7E") }
