package phpvars

import (
	"slices"
	"testing"
)

func TestName(t *testing.T) {
	for name, want := range map[string][]string{
		"id": {"id"}, " id": {"id"}, "data.id": {"data_id"}, "data id": {"data_id"}, "id\x00x": {"id"}, "": nil, " ": nil, "[a]": nil,
		"a[b]": {"a", "b"}, "a[]": {"a", AnyItem}, "a[ ]": {"a", AnyItem}, "a[b][c]": {"a", "b", "c"}, "a[b]c": {"a", "b"}, "a.b[c.d]": {"a_b", "c.d"},
		"a[b": {"a_b"}, "a[b][c": {"a", "b"},
	} {
		if got := Name(name); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"id", "id", true}, {"id", " id", true}, {"a.b", "a_b", true}, {"a", "a[b]", true}, {"a[]", "a[0]", true}, {"a[]", "a[b]", false},
		{"a[b]", "a[c]", false}, {"a", "b", false}, {"a", "[a]", false}, {"a", "", false},
	} {
		if Overlap(Name(c.a), Name(c.b)) != c.want || Overlap(Name(c.b), Name(c.a)) != c.want {
			t.Errorf("%q and %q: not %t", c.a, c.b, c.want)
		}
	}
}

func TestMediaType(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Text/Plain": "text/plain", "a/b; c=d": "a/b", "a/b;": "a/b", "a/b UTF-8": "a/b", "a/b, c/d": "a/b",
	} {
		if got := MediaType(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSameHeader(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"X-Id", "X_Id", true}, {"X-Id", "x.id", true}, {"X-Id", "X-Ids", false}, {"X-Id", "XAId", false},
	} {
		if SameHeader(c.a, c.b) != c.want {
			t.Errorf("%q and %q: not %t", c.a, c.b, c.want)
		}
	}
}
