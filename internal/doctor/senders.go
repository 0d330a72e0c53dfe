package doctor

import (
	"fmt"
	"slices"
	"time"

	"oncegate/internal/config"
)

// senders holds each route's times against what its sender does.
func (r *Report) senders(c *config.Config) {
	for _, route := range c.Routes {
		if route.Mode == config.ModeOff {
			continue
		}
		r.retention(c, route)
		r.wait(route)
	}
}

func (r *Report) retention(c *config.Config, route *config.Route) {
	kept := "claims are kept for " + text(route.Retention)
	switch {
	case route.NeverRetries:
		r.add("retention", route.Name, OK, kept+"; the sender never retries", "")
	case route.RetriesFor == 0:
		r.add("retention", route.Name, Warning, kept+"; how long the sender retries is not known", "say it: retries_for")
	case route.Retention > route.RetriesFor:
		r.add("retention", route.Name, OK, fmt.Sprintf("%s; the sender retries for %s", kept, text(route.RetriesFor)), "")
	case slices.Contains(c.Store.AcceptWeak, "retention"):
		r.add("retention", route.Name, Warning, fmt.Sprintf("%s, and the sender retries for %s (accepted)", kept, text(route.RetriesFor)), "")
	default:
		r.add("retention", route.Name, Fault, fmt.Sprintf("%s, and the sender retries for %s: a late retry runs again", kept, text(route.RetriesFor)), "raise retention")
	}
}

func (r *Report) wait(route *config.Route) {
	waits := "a duplicate waits up to " + text(route.Wait)
	switch {
	case route.Patience == 0:
		r.add("wait", route.Name, Warning, waits+"; how long the sender waits is not known", "say it: patience")
	case route.Wait > route.Patience:
		r.add("wait", route.Name, Fault, fmt.Sprintf("%s, and the sender gives up after %s", waits, text(route.Patience)), "lower wait")
	default:
		r.add("wait", route.Name, OK, fmt.Sprintf("%s; the sender waits for %s", waits, text(route.Patience)), "")
	}
}

// text writes a duration as configurations do.
func text(d time.Duration) string {
	if d >= 24*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return d.String()
}
