package config

import (
	"maps"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"oncegate/provider"
)

// params are the values that the preset's scheme needs, its defaults included.
func (l *loader) params(field string, spec routeSpec, preset *provider.Preset) map[string]string {
	known := map[string]provider.Param{}
	if preset != nil {
		known = preset.Params
	}
	params := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		text, at := spec.Params[name], field+".params"
		if routeName.MatchString(name) {
			at += "." + name
		}
		param, ok := known[name]
		switch {
		case !ok && len(known) == 0:
			l.fault(at, "is of no use here: only presets that name parameters have any")
		case !ok:
			l.fault(at, "is no parameter of this provider; there are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case !fits(param, text):
			l.fault(at, "is not what it must be: %s", param.About)
		}
		params[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		param := known[name]
		if _, said := params[name]; said {
			continue
		}
		if param.Default != "" {
			params[name] = param.Default
		} else if param.Required {
			l.fault(field+".params."+name, "is missing: %s", param.About)
		}
	}
	return params
}

var uuidShape = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// fits reports whether text is a value that the parameter can have.
func fits(param provider.Param, text string) bool {
	if param.Pattern != "" {
		shape, err := regexp.Compile(`^(?:` + param.Pattern + `)$`)
		if err != nil || !shape.MatchString(text) {
			return false
		}
	}
	switch param.Type {
	case "url":
		u, err := url.Parse(text)
		return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
	case "email":
		address, err := mail.ParseAddress(text)
		return err == nil && address.Address == text
	case "uuid":
		return uuidShape.MatchString(text)
	}
	return strings.TrimSpace(text) != ""
}
