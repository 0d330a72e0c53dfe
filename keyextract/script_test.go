package keyextract_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/textproto"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"oncegate/internal/delivery"
	"oncegate/internal/strictyaml"
	"oncegate/keyextract"
)

// TestScripts runs the files in testdata. Each holds a section "spec" and, for
// each case, a section "<name>: request" and one "<name>: want". A request is
// written as on the wire, but for its line ends; where it has the line
// "Body: quoted", the body is a Go string literal.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScript(t, archive) })
	}
}

func runScript(t *testing.T, archive *txtar.Archive) {
	var rules *keyextract.Rules
	var request []byte
	for _, f := range archive.Files {
		if f.Name == "spec" {
			rules = compileYAML(t, f.Data)
			continue
		}
		name, kind, _ := strings.Cut(f.Name, ": ")
		switch kind {
		case "request":
			request = f.Data
		case "want":
			t.Run(name, func(t *testing.T) {
				values, err := rules.Extract(keyextract.Parse(readDelivery(t, request)))
				if got, want := show(values, err), strings.TrimSpace(string(f.Data)); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		default:
			t.Fatalf("section %q", f.Name)
		}
	}
}

func compileYAML(t *testing.T, text []byte) *keyextract.Rules {
	t.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	var spec keyextract.Spec
	if faults := strictyaml.Decode(&node, &spec, strictyaml.Options{}); len(faults) > 0 {
		t.Fatal(faults)
	}
	rules, err := keyextract.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func readDelivery(t *testing.T, text []byte) *delivery.Delivery {
	t.Helper()
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	line, lines, _ := strings.Cut(string(head)+"\n", "\n")
	method, target, ok := strings.Cut(line, " ")
	if !ok {
		t.Fatalf("request line %q", line)
	}
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines + "\n"))).ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	body = bytes.TrimSuffix(body, []byte("\n"))
	if h.Get("Body") == "quoted" {
		h.Del("Body")
		plain, err := strconv.Unquote(string(body))
		if err != nil {
			t.Fatal(err)
		}
		body = []byte(plain)
	}
	return &delivery.Delivery{Method: method, Target: target, Header: map[string][]string(h), Body: body}
}

// show writes what came out of an extraction, one thing a line.
func show(v keyextract.Values, err error) string {
	var b strings.Builder
	if err != nil {
		kind := "other"
		switch {
		case errors.Is(err, keyextract.ErrMissing):
			kind = "missing"
		case errors.Is(err, keyextract.ErrMalformed):
			kind = "malformed"
		}
		var e *keyextract.Error
		if errors.As(err, &e) {
			return fmt.Sprintf("%s at %s: %s", kind, e.Place, e.Detail)
		}
		return kind
	}
	for _, key := range v.Keys {
		fmt.Fprintf(&b, "key %s\n", key)
	}
	if v.Guard != "" {
		fmt.Fprintf(&b, "guard %s\n", v.Guard)
	}
	for _, tag := range v.Tags {
		fmt.Fprintf(&b, "tag %s\n", tag)
	}
	for _, name := range slices.Sorted(maps.Keys(v.Named)) {
		fmt.Fprintf(&b, "named %s %s %s\n", name, kindNames[v.Named[name].Kind], v.Named[name].Text)
	}
	return strings.TrimSpace(b.String())
}

var kindNames = map[keyextract.Kind]string{keyextract.Text: "text", keyextract.Number: "number", keyextract.Bool: "bool"}
