package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"oncegate/internal/strictyaml"
)

var update = flag.Bool("update", false, "write what the scripts and docs/config.md should hold")

// TestScripts loads each configuration in testdata. An archive holds the files
// of one folder ($DIR in all of them), and optionally "env" (one NAME=value a
// line), "flags" (one flag a line) and ".env". Its last file, "want", holds the
// faults, or the configuration and its warnings.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			last := &archive.Files[len(archive.Files)-1]
			got := runScript(t, archive)
			if *update {
				last.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if last.Name != "want" || got != string(last.Data) {
				t.Errorf("got:\n%s\nwant:\n%s", got, last.Data)
			}
		})
	}
}

func runScript(t *testing.T, archive *txtar.Archive) string {
	dir := t.TempDir()
	var o Options
	for _, f := range archive.Files {
		text := strings.ReplaceAll(string(f.Data), "$DIR", dir)
		switch f.Name {
		case "env":
			o.Env = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		case "flags":
			o.Flags = parseFlags(t, text)
		default:
			name := filepath.Join(dir, f.Name)
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			switch f.Name {
			case "oncegate.yaml":
				o.Path = name
			case ".env":
				o.EnvFile = name
			}
		}
	}
	config, err := Load(o)
	return strings.ReplaceAll(describe(t, config, err), dir, "$DIR")
}

func parseFlags(t *testing.T, text string) (f Flags) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "--route":
			f.Routes = append(f.Routes, value)
		case "--upstream":
			f.Upstream = value
		case "--listen":
			f.Listen = value
		case "--state-dir":
			f.StateDir = value
		case "--mode":
			f.Mode = value
		default:
			t.Fatalf("no flag %q", name)
		}
	}
	return f
}

// describe is the faults, or every field of the configuration that is not zero.
func describe(t *testing.T, c *Config, err error) string {
	var b strings.Builder
	if err != nil {
		var faults strictyaml.Faults
		if !errors.As(err, &faults) || c != nil {
			t.Fatalf("the error is no Faults, or stands beside a config: %T", err)
		}
		return err.Error() + "\n"
	}
	fields := func(indent string, v reflect.Value) {
		for i := range v.NumField() {
			name, f := v.Type().Field(i).Name, v.Field(i)
			if !v.Type().Field(i).IsExported() {
				continue
			}
			switch value := f.Interface().(type) {
			case StatusSet:
				fmt.Fprintf(&b, "%s%s:", indent, name)
				for status := range value {
					if value[status] && (status%100 == 0 || !value[status-1]) {
						fmt.Fprintf(&b, " %d", status)
					} else if status > 0 && value[status] && (status == len(value)-1 || !value[status+1]) {
						fmt.Fprintf(&b, "..%d", status)
					}
				}
				b.WriteString("\n")
			case []*Route, []string:
				if texts, ok := value.([]string); ok && len(texts) > 0 && name != "Warnings" {
					fmt.Fprintf(&b, "%s%s: %q\n", indent, name, texts)
				}
			case []Handshake:
				for _, h := range value {
					fmt.Fprintf(&b, "%sHandshake: %s %v unsigned=%v\n", indent, h.Name, h.Methods, h.Unsigned)
				}
			default:
				switch {
				case f.IsZero():
				case name == "Rules" || name == "Preset" || name == "Verifier":
					fmt.Fprintf(&b, "%s%s: yes\n", indent, name)
				case name == "Store":
					fmt.Fprintf(&b, "%s%s: %s url=%s %+v\n", indent, name, value, f.FieldByName("URL"), f.FieldByName("AcceptWeak"))
				default:
					fmt.Fprintf(&b, "%s%s: %v\n", indent, name, value)
				}
			}
		}
	}
	fields("", reflect.ValueOf(c).Elem())
	for _, r := range c.Routes {
		fmt.Fprintf(&b, "\n")
		fields("  ", reflect.ValueOf(r).Elem())
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", w)
	}
	return b.String()
}
