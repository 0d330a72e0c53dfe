// Package provider holds what is known of each provider: how it signs, where
// its event key stands, how long it waits and retries, what it makes of an
// answer. It is data, one YAML file a provider, embedded; this package reads the
// files strictly and adds nothing of its own.
//
//	preset, err := provider.Get("stripe")
//	...
//	verifier, err := verify.Compile(preset.Verify, options)
//	rules, err := keyextract.Compile(preset.KeySpec())
//
// # What a file says
//
// Preset describes the fields, schema.json is their JSON Schema, and
// docs/providers.md shows how to add one. A preset names its sources and what is
// not confirmed. Oracle says whose SDK or published signature its scheme was
// held against; what has none says nothing there.
//
// # Enforced or observed
//
// A preset is enforced by default only where deliveries can be verified and
// there is a key of which it is known that two different events never share it.
// Otherwise its mode is observe, and ObserveWhy says why: losing an event
// is worse than running one twice.
//
// # The key and the signature
//
// KeySigned says whether the key lies wholly among the signed bytes. Where it
// doesn't, a captured delivery can come again under another ID, and where the
// same ID comes with another body, on_mismatch may refuse it.
package provider

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"oncegate/internal/strictyaml"
)

//go:embed presets/*.yaml
var files embed.FS

// ErrUnknown says that there is no preset of that name.
var ErrUnknown = errors.New("no such provider")

// All returns every preset, by name.
func All() ([]*Preset, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	all := make([]*Preset, 0, len(names))
	for _, name := range names {
		p, err := Get(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Names returns the names of all presets, sorted.
func Names() ([]string, error) {
	entries, err := files.ReadDir("presets")
	if err != nil {
		return nil, fmt.Errorf("reading the presets: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names, nil
}

// Get returns the preset of that name, read anew: the caller may keep it.
func Get(name string) (*Preset, error) {
	if name == "" || strings.ContainsAny(name, "/\\.") {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	file := path.Join("presets", name+".yaml")
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	root, faults := strictyaml.Parse(data)
	p := &Preset{Methods: []string{"POST"}, Mode: "enforce"}
	if faults == nil {
		faults = strictyaml.Decode(root, p, strictyaml.Options{})
	}
	if faults != nil {
		return nil, fmt.Errorf("preset %s: %w", file, faults.Err())
	}
	return p, nil
}
