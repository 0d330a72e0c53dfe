// Package doctor looks at a configuration and at what stands around it, and says
// what a person should put right before oncegate is trusted.
//
//	report := doctor.Examine(ctx, doctor.Options{Config: c, Store: store})
//	for _, f := range report { ... }
//	if report.Faults() > 0 { ... }
//
// # What it does not do
//
// It repairs nothing, sends no delivery to the app, and stays within bounds: each
// question has its time, no redirect is followed, nothing is asked twice. Of the
// store it asks for one record of its own (scope "oncegate-doctor"), which expires
// within a second.
//
// # What a finding is
//
// One line about one thing. A Fault breaks a promise, now or when it matters; a
// Warning may; Skipped says what was not looked at, so that nobody takes silence
// for health. No finding holds a secret.
package doctor

import (
	"context"
	"strings"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/openstore"
)

// A Verdict is what a finding comes to.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning"
	Fault   Verdict = "fault"
	Skipped Verdict = "skipped"
)

// A Finding is what was found about one thing.
type Finding struct {
	What    string  `json:"what"`  // config, secrets, store, clock, upstream, ...
	Where   string  `json:"where"` // a route, a file, an address
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Advice  string  `json:"advice,omitempty"` // what to do about it
}

// A Report is all that was found, in the order in which it was looked for.
type Report []Finding

// Faults counts the faults.
func (r Report) Faults() (n int) {
	for _, f := range r {
		if f.Verdict == Fault {
			n++
		}
	}
	return n
}

// lines makes one line of a library's many.
var lines = strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ")

func (r *Report) add(what, where string, v Verdict, found, advice string) {
	*r = append(*r, Finding{what, where, v, lines.Replace(found), advice})
}

// Options say what Examine looks at.
type Options struct {
	// Config is the configuration; required.
	Config *config.Config
	// Store is the configuration's store, not yet examined. Nil: there is none
	// yet, which only SQLite may say.
	Store openstore.Backend
	// FPM are files of PHP-FPM's pools, and Nginx files of nginx's
	// configuration: as far as they can be read, the app's limits are read there.
	FPM, Nginx []string
	// Public is the address at which senders reach the routes, as far as the
	// host: https://shop.example. Empty: routes are not probed.
	Public string
	// Timeout bounds each question; 0 is 5s.
	Timeout time.Duration

	// fileSystem names the network file system that a path lies on; the
	// tests' own.
	fileSystem func(path string) (name string, known bool)
	// writable says why files can't be made in a folder; the tests' own.
	writable func(dir string) error
}

// Examine looks at everything, in one go.
func Examine(ctx context.Context, o Options) Report {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.fileSystem == nil {
		o.fileSystem = networkFileSystem
	}
	if o.writable == nil {
		o.writable = mayWrite
	}
	var r Report
	r.configuration(o.Config)
	r.files(o)
	r.store(ctx, o)
	r.upstreams(ctx, o)
	r.senders(o.Config)
	r.limits(o)
	r.public(ctx, o)
	return r
}

// configuration passes on what the configuration itself warns of, and says of
// each route whether deliveries are verified.
func (r *Report) configuration(c *config.Config) {
	for _, w := range c.Warnings {
		r.add("config", "-", Warning, w, "")
	}
	if len(c.Warnings) == 0 {
		r.add("config", "-", OK, "every field is right", "")
	}
	for _, route := range c.Routes {
		switch {
		case route.Mode == config.ModeOff:
			r.add("route", route.Name, Warning, "mode is off: duplicates reach the app, as if there were no route", "set mode: enforce, when you are ready")
		case route.Mode == config.ModeObserve:
			r.add("route", route.Name, Warning, "mode is observe: duplicates are counted, and reach the app", "set mode: enforce, when the counts are what you expect")
		default:
			r.add("route", route.Name, OK, "enforced at "+route.Path, "")
		}
		if route.Verifier == nil {
			r.add("secrets", route.Name, Warning, "deliveries are not verified: anybody can claim an event's ID before its sender does", "verify them, if the sender signs at all")
			continue
		}
		r.add("secrets", route.Name, OK, "present, and of the form that the scheme needs", "")
	}
}
