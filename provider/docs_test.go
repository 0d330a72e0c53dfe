package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"oncegate/keyextract"
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
	b.WriteString("| provider | name | payments | key | retries for | proven by |\n|---|---|---|---|---|---|\n")
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
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", title, p.Name, dash(payments), dash(key), retriesFor(p), dash(p.Oracle))
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
		fmt.Fprintf(&b, "| [`%s`](%s) | %s | %s | %s | %s |\n", p.Name, p.Docs, key, signed, retriesFor(p), dash(proof))
	}
	b.WriteString("\n")
	return b.String()
}

func keyParts(p *Preset) string {
	var parts []string
	for _, part := range p.Key {
		parts = append(parts, "`"+place(part)+"`")
	}
	return strings.Join(parts, ", ")
}

func retriesFor(p *Preset) string {
	if p.Retries.Never {
		return "never"
	}
	return duration(p.Retries.For)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func duration(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// place names where a part stands.
func place(p keyextract.Part) string {
	switch {
	case len(p.First) > 0:
		var options []string
		for _, one := range p.First {
			options = append(options, place(one))
		}
		return strings.Join(options, " or ")
	case p.Form != "" && p.JSON != "":
		return "form " + p.Form + " " + p.JSON
	case p.JSON != "":
		return p.JSON
	case p.Header != "":
		return p.Header
	case p.Query != "":
		return "query " + p.Query
	case p.Form != "":
		return "form " + p.Form
	case p.XML != "":
		return "xml " + p.XML
	case p.Path != "":
		return "path"
	case p.Method:
		return "method"
	}
	return "digest of the " + p.Digest
}
