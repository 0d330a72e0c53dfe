// Package provider holds the presets.
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
