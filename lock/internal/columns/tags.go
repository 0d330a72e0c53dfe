package columns

import (
	"bytes"
	"fmt"
	"strings"

	"oncegate/lock"
)

// Tags lie in one column as bytes: each tag between two zero bytes, so that
// one of them can be searched for as a part of the whole. The bytes 0 and 1
// inside a tag are written as 1 1 and 1 2.
const (
	fence  = "\x00"
	escape = "\x01"
)

// Tags encodes tags; none are NULL.
func Tags(tags []string) []byte {
	if len(tags) == 0 {
		return nil
	}
	b := []byte(fence)
	for _, t := range tags {
		b = append(b, escaped(t)...)
		b = append(b, fence...)
	}
	return b
}

// Tag returns the bytes to search for in what Tags encoded: they are there if
// and only if tag is one of the tags.
func Tag(tag string) []byte { return []byte(fence + escaped(tag) + fence) }

// ParseTags decodes what Tags encoded.
func ParseTags(b []byte) ([]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	fields := bytes.Split(b, []byte(fence))
	if len(fields) < 3 || len(fields[0]) > 0 || len(fields[len(fields)-1]) > 0 {
		return nil, fmt.Errorf("column tags is not as it was written: %w", lock.ErrUnfit)
	}
	tags := make([]string, 0, len(fields)-2)
	for _, f := range fields[1 : len(fields)-1] {
		tags = append(tags, unescaped(string(f)))
	}
	return tags, nil
}

func escaped(tag string) string {
	if !strings.ContainsAny(tag, fence+escape) {
		return tag
	}
	return strings.NewReplacer(fence, escape+"\x01", escape, escape+"\x02").Replace(tag)
}

func unescaped(tag string) string {
	if !strings.Contains(tag, escape) {
		return tag
	}
	return strings.NewReplacer(escape+"\x01", fence, escape+"\x02", escape).Replace(tag)
}
