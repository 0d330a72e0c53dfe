package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPage holds the lists in docs/providers.md and README.md to the presets.
func TestPage(t *testing.T) {
	holdPage(t, "../docs/providers.md", list(all(t)))
	holdPage(t, "../README.md", shortList(all(t)))
}

func holdPage(t *testing.T, page, want string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: providers -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(data), begin)
	old, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the list", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != want {
		t.Errorf("the list in %s differs from the presets; run go test ./provider -run TestPage -update", page)
	}
}

func list(presets []*Preset) string {
	var b strings.Builder
	b.WriteString("| provider | name | payments | key | retries for | proven against |\n|---|---|---|---|---|---|\n")
	for _, p := range presets {
		key := keyParts(p)
		if key != "" && !p.KeySigned {
			key += " (unsigned)"
		}
		title := fmt.Sprintf("[%s](%s)", p.Title, p.Docs)
		if p.Mode == "observe" {
			title += " (observed)"
		}
		payments := ""
		if p.Payments {
			payments = "yes"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", title, p.Name, dash(payments), dash(key), dash(p.RetriesFor()), dash(p.Oracle))
	}
	return b.String()
}

// shortList is the list as README.md has it.
func shortList(presets []*Preset) string {
	var b strings.Builder
	b.WriteString("\n| `provider:` | event key | signed | retries for | proven against |\n|---|---|---|---|---|\n")
	for _, p := range presets {
		key, signed := keyParts(p), "no"
		switch {
		case p.Mode == "observe":
			key, signed = "observed only", "-"
		case p.KeySigned:
			signed = "yes"
		}
		if p.Each != "" && p.Mode != "observe" {
			key += ", of each item"
		}
		proof, _, _ := strings.Cut(p.Oracle, ",")
		fmt.Fprintf(&b, "| [`%s`](%s) | %s | %s | %s | %s |\n", p.Name, p.Docs, key, signed, dash(p.RetriesFor()), dash(proof))
	}
	b.WriteString("\n")
	return b.String()
}

// keyParts are the places of the key's parts, as code.
func keyParts(p *Preset) string {
	parts := p.KeyPlaces()
	for i := range parts {
		parts[i] = "`" + parts[i] + "`"
	}
	return strings.Join(parts, ", ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
