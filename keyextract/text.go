package keyextract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// MaxKeyText bounds the text of an event key or guard, in bytes.
const MaxKeyText = 16 << 10

// absent is how a part that is absent, but not at the front, is written. No text
// gives this: its "%" would be written %25.
const absent = "%-"

const upperHex = "0123456789ABCDEF"

// appendKeyText writes a text or number in a key. It is injective, uses visible
// ASCII only, and never writes a "/".
func appendKeyText(dst []byte, v Value) []byte {
	if v.Kind == Number {
		return append(append(dst, '#'), v.Text...)
	}
	for i := 0; i < len(v.Text); i++ {
		c := v.Text[i]
		if c < 0x21 || c > 0x7e || c == '%' || c == '/' || c == '#' && i == 0 {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// joinKey writes the values of a key's parts, which are texts, numbers, or
// absent (the zero Value). Leading absent ones are dropped; the text is empty
// where there are no others.
func joinKey(values []Value) string {
	size := 0
	for _, v := range values {
		size += len(v.Text) + len(absent)
	}
	dst := make([]byte, 0, size)
	for _, v := range values {
		if len(dst) == 0 && v == (Value{}) {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, '/')
		}
		if v == (Value{}) {
			dst = append(dst, absent...)
			continue
		}
		dst = appendKeyText(dst, v)
	}
	return string(dst)
}

// textValue is the value of a text: none where there is nothing to see in it.
func textValue(s string) Value {
	for _, r := range s {
		if !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) {
			return Value{Kind: Text, Text: s}
		}
	}
	return Value{}
}

func digestText(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + hex.EncodeToString(sum[:])
}

// maxTags and maxTagValue bound what is stored for searching.
const (
	maxTags     = 16
	maxTagValue = 256
)

// tagText makes a value fit to be stored and shown as plain text: what is no
// valid UTF-8 or not printable is replaced, what is too long is cut.
func tagText(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
	if len(s) <= maxTagValue {
		return s
	}
	end := 0
	for i := range s {
		if i > maxTagValue {
			break
		}
		end = i
	}
	return s[:end]
}
