package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"oncegate/internal/strictyaml"
)

// TestReference holds the tables of README.md and docs/config.md to the structs' comments and to
// defaults.yaml. With -update it writes them.
func TestReference(t *testing.T) {
	defaults, faults := strictyaml.Parse(defaultsYAML)
	if faults != nil {
		t.Fatal(faults)
	}
	settings := []referenceSource{{"top level", "file.go", "topLevel"}, {"both", "file.go", "policy"}, {"route", "file.go", "routeSpec"}}
	holdReference(t, "../../README.md", settings, defaults)
	holdReference(t, "../../docs/config.md", append(settings, []referenceSource{
		{"store", "file.go", "storeSpec"}, {"admin token", "file.go", "tokenSpec"}, {"encryption key", "file.go", "keySpec"},
		{"witness", "../../witness/spec.go", "Spec"}, {"witness_db", "file.go", "witnessDBSpec"}, {"witness_answer", "file.go", "witnessAnswerSpec"},
		{"part", "../../keyextract/spec.go", "Part"}, {"condition", "../../keyextract/spec.go", "Condition"},
		{"handshake", "../../provider/preset.go", "Handshake"},
		{"scheme", "../../verify/spec.go", "Spec"}, {"time", "../../verify/spec.go", "Time"}, {"fields", "../../verify/spec.go", "Fields"},
		{"body_hash", "../../verify/spec.go", "BodyHash"}, {"keys", "../../verify/spec.go", "Keys"}, {"claims", "../../verify/spec.go", "Claims"},
	}...), defaults)
}

// A referenceSource is the struct that a table is made from.
type referenceSource struct{ name, file, strct string }

// holdReference holds the tables of a page against the code, or writes them anew.
func holdReference(t *testing.T, file string, tables []referenceSource, defaults *yaml.Node) {
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, table := range tables {
		begin, end := "<!-- generated: "+table.name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(text, begin)
		old, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Errorf("%s has no place for the table %q", file, table.name)
			continue
		}
		want := referenceTable(t, table.file, table.strct, defaults)
		if old != want && !*update {
			t.Errorf("%s: the table %q differs from the code; run go test ./internal/config -run TestReference -update\n%s", file, table.name, want)
		}
		text = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEnvironmentNames holds the rule that the reference states: the variable is
// the field's name in capitals, and every top-level field has one.
func TestEnvironmentNames(t *testing.T) {
	for _, c := range []struct {
		prefix string
		of     reflect.Type
	}{{"", reflect.TypeFor[topLevel]()}, {"STORE_", reflect.TypeFor[storeSpec]()}} {
		for _, f := range reflect.VisibleFields(c.of) {
			name, env := f.Tag.Get("yaml"), f.Tag.Get("env")
			if want := c.prefix + strings.ToUpper(name); env != want && !f.Anonymous && name != "version" && name != "routes" && name != "store" && name != "url" && name != "admin_tokens" && name != "encryption_keys" {
				t.Errorf("%s is overridden by %s, want %s", name, env, want)
			}
		}
	}
}

func referenceTable(t *testing.T, file, name string, defaults *yaml.Node) string {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var fields []*ast.Field
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
			fields = spec.Type.(*ast.StructType).Fields.List
		}
		return true
	})
	var b strings.Builder
	withDefaults := file == "file.go" && (name == "topLevel" || name == "policy")
	b.WriteString("\n| field | kind | meaning |\n|---|---|---|\n")
	if withDefaults {
		b.Reset()
		b.WriteString("\n| field | kind | default | meaning |\n|---|---|---|---|\n")
	}
	last, lastDoc := "", ""
	for _, f := range fields {
		if f.Tag == nil || len(f.Names) == 0 {
			continue
		}
		field := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("yaml")
		meaning := meaningOf(f, fields)
		switch {
		case meaning != "":
			last, lastDoc = field, f.Doc.Text()
		case file == "file.go":
			t.Errorf("%s: %s has no comment", file, field)
		case strings.Contains(lastDoc, f.Names[0].Name):
			meaning = "See `" + last + "`."
		}
		kind := kindOf(f.Type)
		if special := map[string]string{"store": "text, or a mapping", "verify": "scheme, one or a list; or none"}[field]; special != "" {
			kind = special
		}
		if withDefaults {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", field, kind, defaultOf(defaults, field), meaning)
		} else {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, kind, meaning)
		}
	}
	return b.String() + "\n"
}

var word = regexp.MustCompile(`\b[A-Z][a-z0-9]+[A-Za-z0-9]*\b`)

// listed is a line of a comment's indented list: a word and its meaning.
var listed = regexp.MustCompile(`(?m)^\t([a-z0-9-]+) +(.*)$`)

// meaningOf is a field's comment in one line. Where it is written in the manner
// of Go, beginning with the field's name, names are written as in YAML.
func meaningOf(f *ast.Field, all []*ast.Field) string {
	text := listed.ReplaceAllString(f.Doc.Text(), "; `$1`: $2")
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), " ;", ";")
	text = strings.ReplaceAll(strings.ReplaceAll(text, ":;", ":"), "|", `\|`)
	first, rest, _ := strings.Cut(text, " ")
	if first != f.Names[0].Name {
		return text
	}
	names := map[string]string{}
	for _, other := range all {
		for _, name := range other.Names {
			names[name.Name] = reflect.StructTag(strings.Trim(other.Tag.Value, "`")).Get("yaml")
		}
	}
	return "`" + names[first] + "` " + word.ReplaceAllStringFunc(rest, func(name string) string {
		if yaml, ok := names[name]; ok {
			return "`" + yaml + "`"
		}
		return name
	})
}

func defaultOf(defaults *yaml.Node, field string) string {
	for i := 0; i+1 < len(defaults.Content); i += 2 {
		if defaults.Content[i].Value != field {
			continue
		}
		value := defaults.Content[i+1]
		if value.Kind == yaml.ScalarNode {
			return "`" + value.Value + "`"
		}
		var items []string
		for _, item := range value.Content {
			items = append(items, item.Value)
		}
		return "`[" + strings.Join(items, ", ") + "]`"
	}
	return ""
}

// kindOf says a Go type as a person who writes YAML would.
func kindOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return kindOf(e.X)
	case *ast.ArrayType:
		return kindOf(e.Elt) + ", one or a list"
	case *ast.MapType:
		return "mapping: name to " + kindOf(e.Value)
	case *ast.Ident:
		switch e.Name {
		case "string":
			return "text"
		case "int":
			return "number"
		case "bool":
			return "true, false"
		case "Spec":
			return "scheme"
		}
		return kindName(strings.TrimSuffix(e.Name, "Spec"))
	case *ast.SelectorExpr:
		return kindName(e.Sel.Name)
	}
	return "?"
}

func kindName(name string) string {
	switch name = strings.ToLower(name); name {
	case "part", "condition", "handshake", "route", "duration", "size":
		return name
	}
	return "mapping"
}
