package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"oncegate/internal/strictyaml"
)

var update = flag.Bool("update", false, "write schema.json")

const schemaFile = "schema.json"

type schema = map[string]any

// TestSchema holds schema.json to the structs, and every preset to schema.json.
func TestSchema(t *testing.T) {
	want, err := json.MarshalIndent(presetSchema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Fatal("schema.json differs from the structs; run go test ./provider -run TestSchema -update")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(have))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schemaFile, doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all(t) {
		if err := compiled.Validate(plain(t, p.Name)); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	t.Run("refuses", func(t *testing.T) {
		for name, change := range map[string]func(schema){
			"an unknown member":         func(p schema) { p["patiense"] = "5s" },
			"no docs":                   func(p schema) { delete(p, "docs") },
			"no word on payments":       func(p schema) { delete(p, "payments") },
			"another mode":              func(p schema) { p["mode"] = "strict" },
			"a status that is none":     func(p schema) { p["statuses"] = schema{"busy": 200} },
			"an unknown result":         func(p schema) { p["statuses"] = schema{"fresh": 503} },
			"a duration without a unit": func(p schema) { p["patience"] = "5" },
		} {
			p, ok := plain(t, "stripe").(schema)
			if !ok {
				t.Fatal("stripe is no object")
			}
			if change(p); compiled.Validate(p) == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
}

// plain reads a preset's file as JSON would hold it.
func plain(t *testing.T, name string) any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("presets", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// narrow says of some fields more than their type does.
var narrow = map[string]schema{
	"Preset.name":            {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
	"Preset.docs":            {"pattern": "^https://"},
	"Preset.confidence":      {"enum": []any{"high", "medium", "low"}},
	"Preset.mode":            {"enum": []any{"enforce", "observe"}},
	"Preset.stable_retries":  {"enum": []any{"yes", "no", "unknown", "none"}},
	"Preset.stable_resend":   {"enum": []any{"yes", "no", "unknown", "none"}},
	"Preset.on_missing_key":  {"enum": []any{"refuse", "forward"}},
	"Preset.on_mismatch":     {"enum": []any{"replay", "refuse", "run"}},
	"Preset.on_store_outage": {"enum": []any{"refuse", "forward"}},
	"Preset.on_overload":     {"enum": []any{"refuse", "forward"}},
	"Preset.on_unknown":      {"enum": []any{"retry", "hold"}},
	"Preset.statuses": {
		"propertyNames":        schema{"enum": []any{"busy", "held", "malformed", "mismatch", "overload", "settling", "unavailable", "unkeyed", "unknown", "unreached", "unverified"}},
		"additionalProperties": schema{"type": "integer", "minimum": 400, "maximum": 599},
	},
	"Param.type": {"enum": []any{"text", "url", "email", "uuid"}},
}

var required = map[string][]any{
	"Preset":    {"name", "title", "docs", "payments", "confidence", "sources", "verify", "stable_retries", "stable_resend", "patience", "retries", "success", "answer", "sample"},
	"Param":     {"about", "type", "example"},
	"Handshake": {"name", "when"},
	"Sample":    {"method", "header", "body"},
	"Retries":   {"schedule"},
}

func presetSchema() schema {
	defs := schema{}
	root := schemaOf(reflect.TypeFor[Preset](), defs)
	return schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A preset of oncegate's: what is known of one provider",
		"$ref": root["$ref"], "$defs": defs,
	}
}

func schemaOf(t reflect.Type, defs schema) schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return schema{"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$"}
	case reflect.TypeFor[strictyaml.Size]():
		return schema{"type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB)$"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), defs)
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Slice:
		item := schemaOf(t.Elem(), defs)
		return schema{"anyOf": []any{schema{"type": "array", "items": item, "minItems": 1}, item}}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(t.Elem(), defs)}
	}
	name := t.Name()
	if _, done := defs[name]; !done {
		object := schema{"type": "object", "additionalProperties": false}
		defs[name] = object
		properties := schema{}
		for _, f := range reflect.VisibleFields(t) {
			if tag := strings.Split(f.Tag.Get("yaml"), ",")[0]; tag != "" {
				property := schemaOf(f.Type, defs)
				for k, v := range narrow[name+"."+tag] {
					property[k] = v
				}
				properties[tag] = property
			}
		}
		object["properties"] = properties
		if must := required[name]; must != nil {
			object["required"] = must
		}
	}
	return schema{"$ref": "#/$defs/" + name}
}
