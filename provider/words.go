package provider

import (
	"fmt"
	"strings"
	"time"

	"oncegate/keyextract"
)

// KeyPlaces says where each part of the event key stands, as short as it can be
// read: "/id", "X-GitHub-Delivery", "form payload /id"; in brackets where it may be
// absent.
func (p *Preset) KeyPlaces() []string {
	places := make([]string, len(p.Key))
	for i, part := range p.Key {
		if places[i] = place(part); part.Optional {
			places[i] = "[" + places[i] + "]"
		}
	}
	return places
}

func place(part keyextract.Part) string {
	switch {
	case len(part.First) > 0:
		either := make([]string, len(part.First))
		for i, one := range part.First {
			either[i] = place(one)
		}
		return strings.Join(either, " or ")
	case part.Form != "" && part.JSON != "":
		return "form " + part.Form + " " + part.JSON
	case part.JSON != "":
		return part.JSON
	case part.Header != "":
		return part.Header
	case part.Query != "":
		return "query " + part.Query
	case part.Form != "":
		return "form " + part.Form
	case part.XML != "":
		return "xml " + part.XML
	case part.Path != "":
		return "path"
	case part.Method:
		return "method"
	case part.Const != "":
		return "'" + part.Const + "'"
	}
	return "digest of the body"
}

// RetriesFor says how long after the first try the last one comes: "3d", or
// "never"; empty where that isn't known.
func (p *Preset) RetriesFor() string {
	if p.Retries.Never {
		return "never"
	}
	return span(p.Retries.For)
}

// WaitsFor says how long the provider waits for an answer: "10s"; empty where that
// isn't known.
func (p *Preset) WaitsFor() string { return span(p.Patience) }

// span writes a duration as configurations do; nothing for zero.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
