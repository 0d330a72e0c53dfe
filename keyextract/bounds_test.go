package keyextract_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/lock"
)

var byID = keyextract.Spec{Key: []keyextract.Part{{JSON: "/id"}}}

func extract(t testing.TB, spec keyextract.Spec, d *delivery.Delivery) (keyextract.Values, error) {
	t.Helper()
	rules, err := keyextract.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return rules.Extract(keyextract.Parse(d))
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "key"
	case errors.Is(err, keyextract.ErrMissing):
		return "missing"
	case errors.Is(err, keyextract.ErrMalformed):
		return "malformed"
	}
	return err.Error()
}

func TestBounds(t *testing.T) {
	random := make([]byte, 2025)
	rand.Read(random)
	nested := func(n int) string {
		return `{"id":"x","d":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	batch := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"id":%d}`, i)
		}
		return "[" + b.String()[1:] + "]"
	}
	each := keyextract.Spec{Each: "#", Key: byID.Key}
	xmlID := keyextract.Spec{Key: []keyextract.Part{{XML: "/a/id"}}}
	formID := keyextract.Spec{Key: []keyextract.Part{{Form: "id"}}}
	part := "--X\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n"
	for _, c := range []struct {
		name string
		spec keyextract.Spec
		kind string
		body string
		want string
	}{
		{"B06 2700 bytes that do not compress", byID, "", `{"id":"` + base64.StdEncoding.EncodeToString(random) + `"}`, "key"},
		{"B06 8000 x", byID, "", `{"id":"` + strings.Repeat("x", 8000) + `"}`, "key"},
		{"B06 the longest key", byID, "", `{"id":"` + strings.Repeat("x", 16<<10) + `"}`, "key"},
		{"B06 one byte over", byID, "", `{"id":"` + strings.Repeat("x", 16<<10+1) + `"}`, "malformed"},
		{"B06 64 KiB", byID, "", `{"id":"` + strings.Repeat("x", 64<<10) + `"}`, "malformed"},
		{"B06 a number of 64 KiB", byID, "", `{"id":1` + strings.Repeat("0", 64<<10) + `}`, "malformed"},
		{"B53 JSON and 2 MiB of spaces", byID, "", `{"id":1}` + strings.Repeat(" ", 2<<20), "key"},
		{"nested as deep as PHP reads", byID, "", nested(512), "key"},
		{"nested deeper", byID, "", nested(513), "malformed"},
		{"nested without end", byID, "", strings.Repeat("[", 1<<20), "malformed"},
		{"B13 10000 items", each, "", batch(10_000), "key"},
		{"B13 10001 items", each, "", batch(10_001), "malformed"},
		{"1000 fields", formID, "application/x-www-form-urlencoded", "id=1" + strings.Repeat("&x", 999), "key"},
		{"1001 fields", formID, "application/x-www-form-urlencoded", strings.Repeat("x&", 1000) + "id=1", "malformed"},
		{"1001 parts", formID, "multipart/form-data; boundary=X", strings.Repeat(part, 1001) + "--X--", "malformed"},
		{"a million parts", formID, "multipart/form-data; boundary=X", strings.Repeat("--X", 1<<20), "malformed"},
		{"XML nested too deep", xmlID, "", strings.Repeat("<a>", 257) + strings.Repeat("</a>", 257), "malformed"},
		{"XML with too many elements", xmlID, "", "<a><id>1</id>" + strings.Repeat("<b/>", 100_000) + "</a>", "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := extract(t, c.spec, &delivery.Delivery{
				Header: http.Header{"Content-Type": {c.kind}}, Body: []byte(c.body),
			})
			if got := outcome(err); got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestContentCoding(t *testing.T) {
	write := func(w io.WriteCloser, text string) {
		io.WriteString(w, text)
		w.Close()
	}
	var gz, zl, fl, twice, bomb, big bytes.Buffer
	const body = `{"id":"evt_1"}`
	write(gzip.NewWriter(&gz), body)
	write(zlib.NewWriter(&zl), body)
	raw, err := flate.NewWriter(&fl, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	write(raw, body)
	write(gzip.NewWriter(&twice), gz.String())
	write(gzip.NewWriter(&bomb), body+strings.Repeat(" ", 8<<20))
	write(gzip.NewWriter(&big), body+strings.Repeat(" ", 1<<20-len(body)))
	for _, c := range []struct {
		name   string
		coding []string
		body   []byte
		want   string
	}{
		{"gzip", []string{"gzip"}, gz.Bytes(), "key"},
		{"x-gzip in capitals", []string{" X-GZIP "}, gz.Bytes(), "key"},
		{"deflate", []string{"deflate"}, zl.Bytes(), "key"},
		{"deflate without its frame", []string{"deflate"}, fl.Bytes(), "key"},
		{"no coding at all", []string{"UTF-8, identity"}, []byte(body), "key"},
		{"not what it says", []string{"gzip"}, []byte(body), "malformed"},
		{"not said", nil, gz.Bytes(), "malformed"},
		{"cut off", []string{"gzip"}, gz.Bytes()[:gz.Len()-4], "malformed"},
		{"twice", []string{"gzip", "gzip"}, twice.Bytes(), "malformed"},
		{"up to 1 MiB of anything", []string{"gzip"}, big.Bytes(), "key"},
		{"a bomb", []string{"gzip"}, bomb.Bytes(), "malformed"},
		{"B09 empty", []string{"gzip"}, nil, "missing"},
		{"B09 empty in an unknown coding", []string{"br"}, nil, "missing"},
		{"br", []string{"br"}, []byte(body), "malformed"},
		{"zstd within gzip", []string{"zstd, gzip"}, gz.Bytes(), "malformed"},
		{"x-compress in capitals", []string{"X-Compress"}, []byte(body), "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := extract(t, byID, &delivery.Delivery{
				Header: http.Header{"Content-Encoding": c.coding}, Body: c.body,
			})
			if got := outcome(err); got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

// TestCodingThatNobodyUndoes: a body that can't be read says so, whatever part is
// asked for. As a form it would only seem to lack the field.
func TestCodingThatNobodyUndoes(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		part keyextract.Part
	}{
		"json":      {"application/json", keyextract.Part{JSON: "/id"}},
		"form":      {"application/x-www-form-urlencoded", keyextract.Part{Form: "id"}},
		"multipart": {"multipart/form-data; boundary=X", keyextract.Part{Form: "id"}},
		"xml":       {"text/xml", keyextract.Part{XML: "/a/id"}},
	} {
		t.Run("B14 "+name, func(t *testing.T) {
			_, err := extract(t, keyextract.Spec{Key: []keyextract.Part{c.part}}, &delivery.Delivery{
				Header: http.Header{"Content-Type": {c.kind}, "Content-Encoding": {"br"}},
				Body:   []byte("\x0b\x06\x80{\"id\":\"evt_1\"}\x03"),
			})
			if outcome(err) != "malformed" || !strings.Contains(err.Error(), "Content-Encoding is br") {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("a header is read all the same", func(t *testing.T) {
		v, err := extract(t, keyextract.Spec{Key: []keyextract.Part{{Header: "X-Id"}}}, &delivery.Delivery{
			Header: http.Header{"Content-Encoding": {"zstd"}, "X-Id": {"evt_1"}}, Body: []byte("\x28\xb5\x2f\xfd"),
		})
		if err != nil || v.Keys[0] != "evt_1" {
			t.Errorf("%v, %v", v, err)
		}
	})
}

func TestB03AndB13KeysDiffer(t *testing.T) {
	ids := []string{"9007199254740992", "9007199254740993", "616581622363398142", "616581622363398100",
		"1e21", "1000000000000000000000", "1", "1.0", `"1"`, `"#1"`, `"1.0"`, `"%231"`}
	v, err := extract(t, keyextract.Spec{Each: "#", Key: byID.Key},
		&delivery.Delivery{Body: []byte(`[{"id":` + strings.Join(ids, `},{"id":`) + `}]`)})
	if err != nil || len(v.Keys) != len(ids) {
		t.Errorf("%d ids give %d keys: %q (%v)", len(ids), len(v.Keys), v.Keys, err)
	}
}

func TestKeyFitsAStore(t *testing.T) {
	if keyextract.MaxKeyText != lock.MaxKeyText {
		t.Errorf("keys of up to %d bytes are made, and up to %d stored", keyextract.MaxKeyText, lock.MaxKeyText)
	}
}
