package docs_test

import (
	"os"
	"strings"
	"testing"
)

// Each module that go.mod names as a direct dependency has its line, and no
// line names a module that go.mod does not have.
func TestDependenciesAreListed(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], " | ")
		for _, name := range strings.Split(cell, ", ") {
			name = strings.Trim(name, "`")
			if strings.HasPrefix(name, "otel/") {
				name = "go.opentelemetry.io/" + name
			}
			listed[name] = true
		}
	}
	required := map[string]bool{}
	for line := range strings.Lines(string(mod)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "require "), " ")
		if !strings.HasPrefix(rest, "v") {
			continue
		}
		required[name] = true
		if !strings.Contains(rest, "// indirect") && !listed[name] {
			t.Errorf("docs/dependencies.md does not say why %s is there", name)
		}
	}
	if len(required) == 0 {
		t.Fatal("no module found in go.mod")
	}
	for name := range listed {
		if !required[name] {
			t.Errorf("docs/dependencies.md names %s, which go.mod does not have", name)
		}
	}
}
