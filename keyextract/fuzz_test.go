package keyextract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// everything asks for every place at once.
func everything(t testing.TB) []*keyextract.Rules {
	t.Helper()
	var all []*keyextract.Rules
	for _, spec := range []keyextract.Spec{
		{Key: []keyextract.Part{{JSON: "/id"}}},
		{Key: []keyextract.Part{{JSON: "/a/0/b", Optional: true}, {JSON: "/id", As: "text"}}},
		{Key: []keyextract.Part{{JSON: "/id"}, {JSON: "/t", Root: true}}, Each: "/a/*/b"},
		{Key: []keyextract.Part{{JSON: "/id"}}, Each: "#"},
		{Key: []keyextract.Part{{XML: "/id"}}, Each: "xml:/a/b"},
		{Key: []keyextract.Part{{Form: "id"}}},
		{Key: []keyextract.Part{{Form: "a[b]"}}},
		{Key: []keyextract.Part{{Form: "payload", JSON: "/id"}}},
		{Key: []keyextract.Part{{Query: "id"}}},
		{Key: []keyextract.Part{{XML: "/a/id"}}},
		{Key: []keyextract.Part{{Path: "^/([^/]*)/"}, {Header: "X-Id"}}},
		{Key: []keyextract.Part{{Header: "X-Id", As: "sf-string"}}},
		{
			Key:   []keyextract.Part{{First: []keyextract.Part{{Header: "X-Id"}, {Digest: "body"}}}},
			Guard: []keyextract.Part{{JSON: "/id", Optional: true}},
			Tags:  map[string]keyextract.Part{"x": {JSON: "/id"}, "y": {XML: "/a/id"}},
			Named: map[string]keyextract.Part{"x": {JSON: "/id"}, "y": {Form: "id"}},
		},
	} {
		rules, err := keyextract.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rules)
	}
	return all
}

// FuzzExtract: whatever comes, there are keys and each is fit to be stored, or
// there is an *Error.
func FuzzExtract(f *testing.F) {
	f.Add("/hook/a?id=1", "application/json", "", "x", []byte(`{"id":"evt_1","a":[{"b":[{"id":1}]}],"t":"t"}`))
	f.Add("/h/%2F", "application/json", "gzip", `"x"`, []byte("\x1f\x8b\x08\x00"))
	f.Add("/", "application/x-www-form-urlencoded", "", "", []byte(`payload={"id":1}&id=2&a[b]=3`))
	f.Add("/", "multipart/form-data; boundary=X", "", "", []byte("--X\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n1\r\n--X--\r\n"))
	f.Add("/", "text/xml", "deflate", "", []byte(`<a xmlns:x="u"><x:id>1</x:id></a>`))
	f.Add("/", "text/xml", "", "", []byte("<a>\n <b>\n  <id>1</id>\n </b>\n</a>"))
	f.Add("/", "", "", "", []byte(`[{"id":1},{"\u0069d":"x"}]`))
	f.Add("/", "application/x-www-form-urlencoded", "utf-8, br", "", []byte("\x0b\x02\x80id=1\x03"))
	rules := everything(f)
	f.Fuzz(func(t *testing.T, target, contentType, coding, id string, body []byte) {
		before := bytes.Clone(body)
		doc := keyextract.Parse(&delivery.Delivery{
			Method: "POST", Target: target, Body: body,
			Header: http.Header{"Content-Type": {contentType}, "Content-Encoding": {coding}, "X-Id": {id}},
		})
		for _, r := range rules {
			v, err := r.Extract(doc)
			again, errAgain := r.Extract(doc)
			if show(v, err) != show(again, errAgain) {
				t.Fatalf("two answers: %q and %q", show(v, err), show(again, errAgain))
			}
			if err != nil {
				checkError(t, err)
				continue
			}
			if len(v.Keys) == 0 {
				t.Fatal("no error and no key")
			}
			for _, key := range append(v.Keys, v.Guard+"x") {
				checkKey(t, key)
			}
			for _, tag := range v.Tags {
				if !utf8.ValidString(tag) || len(tag) > 300 {
					t.Fatalf("tag %q", tag)
				}
			}
		}
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *keyextract.Error
	if !errors.As(err, &e) || e.Place == "" || e.Detail == "" {
		t.Fatalf("error %#v", err)
	}
	if errors.Is(err, keyextract.ErrMissing) == errors.Is(err, keyextract.ErrMalformed) {
		t.Fatalf("%v is both or neither", err)
	}
}

func checkKey(t *testing.T, key string) {
	t.Helper()
	if key == "" || len(key) > keyextract.MaxKeyText+1 ||
		strings.ContainsFunc(key, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		t.Fatalf("key %q", key)
	}
}

// FuzzJSONAgainstStdlib: on valid UTF-8 without repeated members, encoding/json
// and a dumb walk find the same value.
func FuzzJSONAgainstStdlib(f *testing.F) {
	for _, seed := range []string{
		`{"id":"evt_1"}`, `{"a":{"id":1e3}}`, `{"a":["x",{"id":-0.5}]}`, `{"\u0069d":"\u00e9\/\n"}`,
		`[{"id":null}]`, `{"":{"~":"t"}}`, `{"a":[[1,2],3]} `, `{"id":"a"}{}`, `"x"`, `{"id":tru`, `{"a":[1,2],"0":3}`,
	} {
		f.Add([]byte(seed))
	}
	pointers := map[string][]string{
		"/id": {"id"}, "/a/id": {"a", "id"}, "/a/1/id": {"a", "1", "id"}, "/0/id": {"0", "id"},
		"//~0": {"", "~"}, "/a/0/1": {"a", "0", "1"}, "/a": {"a"}, "#": nil,
	}
	rules := map[string]*keyextract.Rules{}
	for pointer := range pointers {
		r, err := keyextract.Compile(keyextract.Spec{Named: map[string]keyextract.Part{"v": {JSON: pointer}}})
		if err != nil {
			f.Fatal(err)
		}
		rules[pointer] = r
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		root, ok := decodeStrict(body)
		if !ok {
			return
		}
		doc := keyextract.Parse(&delivery.Delivery{Body: body})
		for pointer, path := range pointers {
			v, err := rules[pointer].Extract(doc)
			if err != nil {
				t.Fatalf("%q at %s: %v", body, pointer, err)
			}
			got, want := v.Named["v"], walk(root, path)
			if got.Text != want && strings.TrimSpace(want) != "" && got.Kind != 0 {
				t.Fatalf("%q at %s: got %q, want %q", body, pointer, got.Text, want)
			}
			if got.Kind == 0 && strings.ContainsFunc(want, func(r rune) bool { return r > ' ' && r < 0x7f }) {
				t.Fatalf("%q at %s: nothing, want %q", body, pointer, want)
			}
		}
	})
}

// decodeStrict reads what both implementations must agree on.
func decodeStrict(body []byte) (root any, ok bool) {
	if !json.Valid(body) || !utf8.Valid(body) || bytes.Contains(bytes.ToLower(body), []byte(`\ud`)) ||
		bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > 500 {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if repeats(dec) {
		return nil, false
	}
	dec = json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return root, dec.Decode(&root) == nil
}

// repeats reads one value and reports whether an object in it has a member twice.
func repeats(dec *json.Decoder) bool {
	tok, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return false
	}
	found, names := false, map[string]bool{}
	switch tok {
	case json.Delim('{'):
		for dec.More() {
			name, _ := dec.Token()
			found = found || names[name.(string)]
			names[name.(string)] = true
			found = repeats(dec) || found
		}
		dec.Token()
	case json.Delim('['):
		for dec.More() {
			found = repeats(dec) || found
		}
		dec.Token()
	}
	return found
}

func walk(v any, path []string) string {
	for _, name := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[name]
		case []any:
			i := strings.Index("0123456789", name)
			if len(name) != 1 || i < 0 || i >= len(c) {
				return ""
			}
			v = c[i]
		default:
			return ""
		}
	}
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	}
	return ""
}
