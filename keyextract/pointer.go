package keyextract

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// maxPointer bounds the members that a pointer names.
const maxPointer = 32

// parsePointer reads an RFC 6901 pointer. "#", the URI fragment of the empty
// pointer (section 6), is the whole document: an empty string would be taken
// for a place that was not given.
func parsePointer(s string) ([]string, error) {
	if s == "#" {
		return nil, nil
	}
	if !strings.HasPrefix(s, "/") {
		return nil, errors.New(`a JSON pointer begins with "/", as in /data/id ("#" is the whole document)`)
	}
	if !utf8.ValidString(s) {
		return nil, errors.New("a JSON pointer is UTF-8")
	}
	names := strings.Split(s[1:], "/")
	if len(names) > maxPointer {
		return nil, errors.New("this JSON pointer is too long")
	}
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, errors.New(`in a JSON pointer "~" is written ~0 and "/" inside a name ~1`)
		}
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return names, nil
}
