package columns

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// FuzzTags: decode of encode is the identity, and a search finds a tag exactly
// where it is one.
func FuzzTags(f *testing.F) {
	f.Add("a=1|b=2", "a=1")
	f.Add("", "")
	f.Add("\x00|\x01|\x01\x01|\x00\x01\x02", "\x01\x01")
	f.Add("ab|cd", "b")
	f.Fuzz(func(t *testing.T, joined, search string) {
		tags := strings.Split(joined, "|")
		b := Tags(tags)
		got, err := ParseTags(b)
		if err != nil || !slices.Equal(got, tags) {
			t.Fatalf("got %q and %v, not %q", got, err, tags)
		}
		if found := bytes.Contains(b, Tag(search)); found != slices.Contains(tags, search) {
			t.Fatalf("search for %q in %q: %v", search, tags, found)
		}
	})
}

// FuzzParseTags: whatever lies in the column, there is no panic, and what is
// accepted comes back.
func FuzzParseTags(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x00"))
	f.Add([]byte("\x00a\x00"))
	f.Add([]byte("\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tags, err := ParseTags(b)
		if err != nil {
			return
		}
		again, err := ParseTags(Tags(tags))
		if err != nil || !slices.Equal(again, tags) {
			t.Fatalf("%q became %q, %v", tags, again, err)
		}
	})
}
