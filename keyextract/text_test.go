package keyextract

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// decodeKey is the dumb inverse of joinKey: what it returns for a key's text is
// the one list of n values that gives this text.
func decodeKey(text string, n int) []Value {
	var values []Value
	for piece := range strings.SplitSeq(text, "/") {
		switch {
		case piece == "%-":
			values = append(values, Value{})
		case strings.HasPrefix(piece, "#"):
			values = append(values, Value{Number, piece[1:]})
		default:
			plain, err := url.PathUnescape(piece)
			if err != nil {
				panic(err)
			}
			values = append(values, Value{Text, plain})
		}
	}
	for len(values) < n {
		values = slices.Insert(values, 0, Value{})
	}
	return values
}

func FuzzKeyText(f *testing.F) {
	for _, seed := range [][]string{
		{"evt_1"}, {"acct_1", "evt_1"}, {"", "evt_1"}, {"a", "", "b"}, {"a", ""}, {"#1", "1"},
		{"%-", "%2F"}, {"a/b", "c"}, {"é\x00\xff", "#"}, {"a\nb", "-"}, {"1e21", "1.0", "-0"},
	} {
		f.Add([]byte(strings.Join(seed, "\n")), uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, numbers uint8) {
		var values []Value
		present := false
		for i, line := range bytes.Split(data, []byte("\n")) {
			v := Value{Text, string(line)}
			if len(line) == 0 {
				v = Value{}
			} else if i < 8 && numbers>>i&1 == 1 && isNumber(line) {
				v.Kind = Number
			}
			present = present || v.Kind != 0
			values = append(values, v)
		}
		text := joinKey(values)
		if !present {
			if text != "" {
				t.Fatalf("nothing present gives %q", text)
			}
			return
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r < 0x21 || r > 0x7e }); i >= 0 {
			t.Fatalf("%q is not visible ASCII", text)
		}
		if got := decodeKey(text, len(values)); !slices.Equal(got, values) {
			t.Fatalf("%q stands for %q and for %q", text, values, got)
		}
	})
}

func isNumber(b []byte) bool {
	return json.Valid(b) && (b[0] == '-' || '0' <= b[0] && b[0] <= '9') && b[len(b)-1] > ' '
}

func TestTagText(t *testing.T) {
	for in, want := range map[string]string{
		"7 é":                          "7 é",
		"a\nb\x00\xff":                 "a\ufffdb\ufffd\ufffd",
		strings.Repeat("x", 300):       strings.Repeat("x", 256),
		"x" + strings.Repeat("é", 200): "x" + strings.Repeat("é", 127),
		strings.Repeat("é", 128):       strings.Repeat("é", 128),
	} {
		got := tagText(in)
		if got != want || len(got) > maxTagValue || !utf8.ValidString(got) {
			t.Errorf("tagText(%q) = %q, want %q", in, got, want)
		}
	}
}
