package keyextract

import (
	"slices"
	"strings"

	"oncegate/internal/phpvars"
)

// maxFields is PHP's max_input_vars: of what follows the app sees nothing.
const maxFields = 1000

// A field is one name and value of a query or form. Its name is kept as PHP
// understands it, so that all spellings of one variable are equal.
type field struct {
	name  []string
	value string
}

// parseURLEncoded reads a query or an urlencoded form.
func parseURLEncoded(s string) ([]field, *Error) {
	var fields []field
	for count := 0; s != ""; {
		var pair string
		pair, s, _ = strings.Cut(s, "&")
		if pair == "" {
			continue
		}
		if count++; count > maxFields {
			return nil, malformed("more than %d fields", maxFields)
		}
		name, value, _ := strings.Cut(pair, "=")
		if parsed := phpvars.Name(urlDecode(name)); parsed != nil {
			fields = append(fields, field{parsed, urlDecode(value)})
		}
	}
	return fields, nil
}

// readField returns the value of the one field with this name.
func readField(fields []field, name []string) (Value, *Error) {
	var value Value
	setters, inside := 0, 0 // fields that set the variable, or a part of it
	for _, f := range fields {
		switch {
		case !phpvars.Overlap(f.name, name):
		case len(f.name) > len(name):
			inside++
		default:
			setters++
			if slices.Equal(f.name, name) {
				value = textValue(f.value)
			} else if len(f.name) == len(name) {
				return Value{}, malformed("an item without an index, which PHP may put in the same place")
			}
		}
	}
	if setters > 0 && setters+inside > 1 {
		return Value{}, malformed("the field is given %d times", setters+inside)
	}
	if inside > 0 {
		return Value{Kind: container}, nil
	}
	return value, nil
}

// urlDecode decodes as PHP's urldecode does: a "%" that no two hex digits follow
// stays.
func urlDecode(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			out = append(out, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
