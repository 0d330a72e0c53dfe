package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/strictyaml"
	"oncegate/provider"
)

// presetRoute is a file with one route of a preset, which has all that the
// preset asks for but a secret of the right form.
func presetRoute(p *provider.Preset, more string) string {
	text := "state_dir: /srv\nupstream: http://127.0.0.1:8000\npublic_url: https://shop.example\nroutes:\n  shop:\n    path: /hook\n    provider: " + p.Name + "\n" + more
	if needsSecret(p.Verify) {
		text += "    secrets: user:s3cret\n"
	}
	if p.CallerRequired {
		text += "    caller: {header: Authorization}\n"
	}
	if len(p.Params) > 0 {
		text += "    params:\n"
	}
	for _, name := range slices.Sorted(maps.Keys(p.Params)) {
		text += fmt.Sprintf("      %s: %q\n", name, p.Params[name].Example)
	}
	return text
}

// Every preset makes a route. What is wrong with the test's secret is not asked.
func TestEveryPreset(t *testing.T) {
	presets, err := provider.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range presets {
		t.Run(p.Name, func(t *testing.T) {
			c, err := Load(writeConfig(t, presetRoute(p, "")))
			var faults strictyaml.Faults
			errors.As(err, &faults)
			for _, f := range faults {
				if f.Field != "routes.shop.secrets" && !strings.HasPrefix(f.Field, "routes.shop.verify") {
					t.Errorf("%s", f)
				}
			}
			if err != nil {
				return
			}
			r := c.Routes[0]
			if string(r.Mode) != p.Mode || len(r.Handshakes) != len(p.Handshakes) || !slices.Equal(r.Methods, p.Methods) || r.NeverRetries != p.Retries.Never {
				t.Errorf("the route is not what the preset says: %+v", *r)
			}
			if p.Mode == "observe" && !strings.Contains(strings.Join(c.Warnings, "\n"), "is observed and not enforced") {
				t.Errorf("nobody is told that the route is only observed: %q", c.Warnings)
			}
		})
	}
}

func TestObservedPreset(t *testing.T) {
	p, err := provider.Get("mollie-classic")
	if err != nil {
		t.Fatal(err)
	}
	for more, want := range map[string]Mode{"": ModeObserve, "    mode: off\n": ModeOff, "    mode: enforce\n    verify: none\n    key: {form: id}\n": ModeEnforce} {
		c, err := Load(writeConfig(t, presetRoute(p, more)))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Routes[0].Mode; got != want {
			t.Errorf("%q: %s, want %s", more, got, want)
		}
	}
	c, err := Load(writeConfig(t, presetRoute(p, "    mode: enforce\n    key: {form: id}\n")))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(c.Warnings, "\n"), "nothing is verified") {
		t.Errorf("nobody is told that everyone is let in: %q", c.Warnings)
	}
}

func TestParams(t *testing.T) {
	for _, c := range []struct {
		param provider.Param
		text  string
		want  bool
	}{
		{provider.Param{}, "x", true},
		{provider.Param{}, " ", false},
		{provider.Param{Pattern: "a|b"}, "b", true},
		{provider.Param{Pattern: "a|b"}, "ab", false},
		{provider.Param{Type: "url"}, "https://shop.example/x", true},
		{provider.Param{Type: "url"}, "shop.example", false},
		{provider.Param{Type: "email"}, "me@shop.example", true},
		{provider.Param{Type: "email"}, "Me <me@shop.example>", false},
		{provider.Param{Type: "uuid"}, "123e4567-e89b-12d3-a456-426614174000", true},
		{provider.Param{Type: "uuid"}, "123e4567", false},
	} {
		if got := fits(c.param, c.text); got != c.want {
			t.Errorf("%+v fits %q: %v", c.param, c.text, got)
		}
	}
	preset := &provider.Preset{Params: map[string]provider.Param{
		"needed": {Required: true, About: "what is needed"}, "chosen": {Default: "usual"}, "free": {}, "shaped": {Pattern: "[0-9]+", About: "digits"},
	}}
	l := &loader{}
	got := l.params("r", routeSpec{Params: map[string]string{"shaped": "x", "other": "y"}}, preset)
	if got["chosen"] != "usual" || len(got) != 3 {
		t.Errorf("got %v", got)
	}
	want := "r.params.other: is no parameter of this provider; there are chosen, free, needed, shaped\n" +
		"r.params.shaped: is not what it must be: digits\nr.params.needed: is missing: what is needed"
	if l.faults.Error() != want {
		t.Errorf("got %s", l.faults)
	}
}
