package keyextract_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

func TestOnly(t *testing.T) {
	for _, c := range []struct{ name, each, body, keep, want string }{
		{"the first", "#", `[{"id":"a"},{"id":"b"}]`, "a", `[{"id":"a"}]`},
		{"the last", "#", `[{"id":"a"},{"id":"b"}]`, "b", `[{"id":"b"}]`},
		{"the ends", "#", `[{"id":"a"} , {"id":"b"},` + "\n" + `{"id":"c"}]`, "a c", `[{"id":"a"},{"id":"c"}]`},
		{"a repeat", "#", `[{"id":"a","n":1},{"id":"b"},{"id":"a","n":2}]`, "a b", `[{"id":"a","n":1},{"id":"b"}]`},
		{"all", "#", `[{"id":"a"},{"id":"b"}]`, "b a", ""},
		{"what stands around", "/events", ` {"n":2, "events" : [ {"id":"a"}, {"id":"b"} ] ,"z":[]} `, "b", ` {"n":2, "events" : [{"id":"b"}] ,"z":[]} `},
		{"numbers, escapes and order", "/events", `{"events":[{"id":"a"},{"x":1.0e+2,"b":"\u00e9\/]}\"","id":"b","y":9007199254740993}]}`, "b", `{"events":[{"x":1.0e+2,"b":"\u00e9\/]}\"","id":"b","y":9007199254740993}]}`},
		{"broken text elsewhere", "#", "[{\"id\":\"a\"},{\"id\":\"b\",\"x\":\"\xff\"}]", "b", "[{\"id\":\"b\",\"x\":\"\xff\"}]"},
	} {
		t.Run("B13 "+c.name, func(t *testing.T) {
			r := compile(t, keyextract.Spec{Each: c.each, Key: []keyextract.Part{{JSON: "/id"}}})
			body, cut, err := r.Only(keyextract.Parse(&delivery.Delivery{Body: []byte(c.body)}), strings.Fields(c.keep))
			if err != nil || string(body) != c.want || cut != (c.want != "") {
				t.Errorf("got %q %v %v, want %q", body, cut, err, c.want)
			}
		})
	}
	t.Run("a coded body comes out plain", func(t *testing.T) {
		var coded bytes.Buffer
		w := gzip.NewWriter(&coded)
		fmt.Fprint(w, `[{"id":"a"},{"id":"b"}]`)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r := compile(t, keyextract.Spec{Each: "#", Key: []keyextract.Part{{JSON: "/id"}}})
		body, _, err := r.Only(keyextract.Parse(&delivery.Delivery{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: coded.Bytes()}), []string{"b"})
		if string(body) != `[{"id":"b"}]` {
			t.Errorf("%q, %v", body, err)
		}
	})
	for name, spec := range map[string]keyextract.Spec{
		"no batch":        {Key: []keyextract.Part{{JSON: "/id"}}},
		"several arrays":  {Each: "/entry/*/changes", Key: []keyextract.Part{{JSON: "/id"}}},
		"XML":             {Each: "xml:/a/b", Key: []keyextract.Part{{XML: "/id"}}},
		"the body's hash": {Each: "#", Key: []keyextract.Part{{JSON: "/id"}, {First: []keyextract.Part{{Digest: "body"}}}}},
	} {
		t.Run("can't be split: "+name, func(t *testing.T) {
			r := compile(t, spec)
			if _, _, err := r.Only(keyextract.Parse(&delivery.Delivery{Body: []byte("[]")}), nil); err == nil || r.CanSplit() == nil {
				t.Error("it is split")
			}
		})
	}
}

func compile(t testing.TB, spec keyextract.Spec) *keyextract.Rules {
	t.Helper()
	r, err := keyextract.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzOnly: what is left holds the wanted keys, in their order, each once, and
// around them what was there.
func FuzzOnly(f *testing.F) {
	for _, seed := range []string{
		`[{"id":"a"},{"id":1},{"id":"a"}]`, ` [ {"id":"a","x":[1,{"y":"]"}]} , {"id":"b"} ] `, `[{"id":"\u0061"},{"id":"b"}]`, `[[],{"id":1}]`,
	} {
		f.Add([]byte(seed), uint64(5))
	}
	r := compile(f, keyextract.Spec{Each: "#", Key: []keyextract.Part{{JSON: "/id"}}})
	f.Fuzz(func(t *testing.T, text []byte, choice uint64) {
		before := slices.Clone(text)
		parse := func(text []byte) *keyextract.Document { return keyextract.Parse(&delivery.Delivery{Body: text}) }
		all, err := r.Extract(parse(text))
		if err != nil {
			if _, _, again := r.Only(parse(text), nil); again == nil || again.Error() != err.Error() {
				t.Fatalf("Extract says %v, Only %v", err, again)
			}
			return
		}
		var wanted []string
		for i, key := range all.Keys {
			if choice>>(i%64)&1 == 1 {
				wanted = append(wanted, key)
			}
		}
		body, cut, err := r.Only(parse(text), wanted)
		if err != nil || !bytes.Equal(before, text) {
			t.Fatal("failed, or changed its source: ", err)
		}
		if !cut || len(wanted) == 0 {
			return
		}
		left, err := r.Extract(parse(body))
		if err != nil || !slices.Equal(left.Keys, wanted) {
			t.Fatalf("%q of %q: keys %q, want %q (%v)", body, text, left.Keys, wanted, err)
		}
		if _, again, err := r.Only(parse(body), wanted); again || err != nil {
			t.Fatalf("%q: there is more to cut away (%v)", body, err)
		}
		if json.Valid(text) && !json.Valid(body) {
			t.Fatalf("%q is no JSON", body)
		}
	})
}
