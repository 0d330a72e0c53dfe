package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z0-9_.]{1,128}$`)
	// urlShape is a text with a literal scheme, or with one from a variable (the
	// NUL byte stands for a variable); of those without // only the two that
	// upstreams have.
	urlShape = regexp.MustCompile(`^(?:\x00|[A-Za-z][A-Za-z0-9+.-]*)://|^(?:http|fcgi)\+unix:`)
	urlWord  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	hostText = regexp.MustCompile(`^[A-Za-z0-9._:,\[\]-]+$`)
)

// expand replaces every ${NAME} in text by the variable's value, and every $${
// by ${. Where text is a URL, the value is escaped for the place it stands in.
// Errors hold no value.
func (v *variables) expand(text string) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	shape, names, err := cutVariables(text)
	if err != nil {
		return "", err
	}
	escape := func(_ int, _, value string) (string, error) { return value, nil }
	if urlShape.MatchString(shape) {
		escape = urlPlaces(shape)
	}
	var out strings.Builder
	var faults []error
	for i := range len(shape) {
		if shape[i] != 0 {
			out.WriteByte(shape[i])
			continue
		}
		name := names[0]
		names = names[1:]
		value, err := v.get(name)
		if err == nil {
			value, err = escape(i, name, value)
		}
		if err != nil {
			faults = append(faults, err)
		}
		out.WriteString(value)
	}
	if len(faults) > 0 {
		texts := make([]string, len(faults))
		for i, f := range faults {
			texts[i] = f.Error()
		}
		return "", errors.New(strings.Join(texts, "; "))
	}
	return out.String(), nil
}

// cutVariables returns text with a NUL byte in place of each variable, and the
// variables' names in order.
func cutVariables(text string) (shape string, names []string, err error) {
	if strings.ContainsRune(text, 0) {
		return "", nil, errors.New("holds a NUL byte")
	}
	var b strings.Builder
	for text != "" {
		before, after, found := strings.Cut(text, "${")
		if literal, ok := strings.CutSuffix(before, "$"); found && ok {
			b.WriteString(literal + "${")
			text = after
			continue
		}
		b.WriteString(before)
		if !found {
			break
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed || !variableName.MatchString(name) {
			return "", nil, errors.New("holds a ${ that begins no variable: write ${NAME}, without defaults or spaces, or $${ for the two characters themselves")
		}
		b.WriteByte(0)
		names = append(names, name)
		text = rest
	}
	return b.String(), names, nil
}

// urlPlaces returns a function that escapes the value of the variable at index i
// of shape for the part of the URL that it stands in.
func urlPlaces(shape string) func(i int, name, value string) (string, error) {
	_, rest, hasAuthority := strings.Cut(shape, "://")
	authority := len(shape) - len(rest)
	end := len(shape)
	if !hasAuthority {
		authority, end = 0, 0
	} else if n := strings.IndexAny(rest, "/?#"); n >= 0 {
		end = authority + n
	}
	host := authority + strings.LastIndexByte(shape[authority:end], '@') + 1
	return func(i int, name, value string) (string, error) {
		switch {
		case hasAuthority && i < authority:
			if !urlWord.MatchString(value) {
				return "", fmt.Errorf("variable %s stands for a URL's scheme and holds none", name)
			}
			return value, nil
		case i >= host && i < end:
			return escapeHost(name, value, i > 0 && shape[i-1] == '[')
		}
		return escapeAll(value), nil
	}
}

// escapeHost lets a host, an IP address, a port or a list of them through. A
// host's characters can't be escaped: what holds others is no host.
func escapeHost(name, value string, bracketed bool) (string, error) {
	if ip, err := netip.ParseAddr(value); err == nil && ip.Is6() && !bracketed {
		return "[" + value + "]", nil
	}
	if !hostText.MatchString(value) {
		return "", fmt.Errorf("variable %s stands for the host or port of a URL and holds neither", name)
	}
	return value, nil
}

// escapeAll percent-encodes everything but RFC 3986's unreserved characters,
// which is right for userinfo, one path segment, and a name or value in a query.
func escapeAll(value string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
