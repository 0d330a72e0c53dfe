package config

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"oncegate/internal/strictyaml"
)

// checkTop checks the fields of the top level, each by itself.
func (l *loader) checkTop() {
	if v := l.top.Version; v != nil && *v != 1 {
		l.fault("version", "must be 1, the only format there is")
	}
	l.oneOf("log_level", l.top.LogLevel, "debug", "info", "warn", "error")
	between(l, "store_timeout", l.top.StoreTimeout, 10*time.Millisecond, time.Minute)
	between(l, "upstream_idle_timeout", l.top.UpstreamIdleTimeout, 0, time.Hour)
	between(l, "drain_delay", l.top.DrainDelay, 0, 10*time.Minute)
	between(l, "drain_timeout", l.top.DrainTimeout, 0, time.Hour)
	between(l, "killed_after", l.top.KilledAfter, 0, 3*time.Hour)
	between(l, "evidence_retention", l.top.EvidenceRetention, 0, 3650*day)
	between(l, "max_in_hand", l.top.MaxInHand, 1, 1_000_000)
	between(l, "max_in_hand_bytes", l.top.MaxInHandBytes, 1<<10, 1<<40)
	l.checkPolicy("", l.top.policy)
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")

const (
	day = 24 * time.Hour
	// A body and an answer are held in memory whole.
	maxMaxBody   = 1 << 30
	maxMaxAnswer = 16 << 20
)

// checkPolicy checks what one level says about policies, each field by itself.
func (l *loader) checkPolicy(prefix string, p policy) {
	l.oneOf(prefix+"mode", p.Mode, string(ModeEnforce), string(ModeObserve), string(ModeOff))
	l.oneOf(prefix+"on_unknown", p.OnUnknown, "retry", "hold", "witness")
	l.oneOf(prefix+"on_missing_key", p.OnMissingKey, "refuse", "forward")
	l.oneOf(prefix+"on_mismatch", p.OnMismatch, "replay", "refuse", "run")
	l.oneOf(prefix+"on_store_outage", p.OnStoreOutage, "refuse", "forward")
	l.oneOf(prefix+"on_overload", p.OnOverload, "refuse", "forward")
	l.oneOf(prefix+"record", p.Record, "none", "unsettled", "headers", "full")
	between(l, prefix+"attempts", p.Attempts, 0, 1_000_000)
	between(l, prefix+"wait", p.Wait, 0, 10*time.Minute)
	between(l, prefix+"retention", p.Retention, time.Millisecond, 3650*day)
	between(l, prefix+"lease", p.Lease, time.Second, 10*time.Minute)
	between(l, prefix+"app_limit", p.AppLimit, 0, day)
	between(l, prefix+"upstream_timeout", p.UpstreamTimeout, time.Millisecond, day)
	between(l, prefix+"max_body", p.MaxBody, 1, maxMaxBody)
	between(l, prefix+"max_answer", p.MaxAnswer, 0, maxMaxAnswer)
	for i, name := range p.Redact {
		if !headerName.MatchString(name) {
			l.fault(item(prefix+"redact", i), "must be the name of a header")
		}
	}
	l.unknownStatuses(prefix+"unknown_statuses", p.UnknownStatuses)
}

// oneOf notes a fault where a text is given and is none of the words.
func (l *loader) oneOf(field string, p *string, words ...string) {
	if p != nil && !slices.Contains(words, *p) {
		last := len(words) - 1
		l.fault(field, "must be %s or %s", strings.Join(words[:last], ", "), words[last])
	}
}

// between notes a fault where a value is given and lies outside low..high.
func between[T int | time.Duration | strictyaml.Size](l *loader, field string, p *T, low, high T) {
	if p != nil && (*p < low || *p > high) {
		l.fault(field, "must be between %s and %s", readable(low), readable(high))
	}
}

// checkRoute checks what a route's fields mean for each other, whichever level
// they came from. A field that has a fault by itself is compared with nothing.
func (l *loader) checkRoute(c *Config, r *Route, said policy) {
	field := "routes." + r.Name + "."
	sound := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return l.faulty(field+name) || l.faulty(name) })
	}
	if r.Patience > 0 && r.Wait > r.Patience && sound("wait", "patience") {
		l.fault(field+"wait", "%s is longer than the sender waits for an answer (patience %s); make it shorter, best 80 %% of that", readable(r.Wait), readable(r.Patience))
	}
	if r.AppLimit > 0 && r.UpstreamTimeout > r.AppLimit && sound("upstream_timeout", "app_limit") {
		l.fault(field+"upstream_timeout", "%s is longer than the app can work (app_limit %s); if it can work that long, say so in app_limit", readable(r.UpstreamTimeout), readable(r.AppLimit))
	}
	if c.StoreTimeout > r.Lease && sound("lease", "store_timeout") {
		l.fault(field+"lease", "%s is shorter than store_timeout (%s): one slow renewal would lose the claim", readable(r.Lease), readable(c.StoreTimeout))
	}
	if r.Retention <= r.RetriesFor && !c.Store.accepts("retention") && sound("retention", "retries_for") {
		l.fault(field+"retention", "%s is not longer than the sender keeps retrying (%s): a late retry would run the event again; keep claims longer, or accept it with store.accept_weak: [retention]", readable(r.Retention), readable(r.RetriesFor))
	}
	if r.MaxBody+r.MaxAnswer > c.MaxInHandBytes && sound("max_body", "max_answer", "max_in_hand_bytes") {
		l.fault(field+"max_body", "%s and max_answer (%s) are more than all that may be in hand (max_in_hand_bytes %s)", readable(strictyaml.Size(r.MaxBody)), readable(strictyaml.Size(r.MaxAnswer)), readable(strictyaml.Size(c.MaxInHandBytes)))
	}
	if r.OnUnknown == "hold" && r.Record == "headers" {
		l.fault(field+"record", "headers is not enough for on_unknown: hold, which keeps the request; use unsettled or full")
	}
	if r.Mode == ModeEnforce && (!r.UnknownStatuses.Has(502) || !r.UnknownStatuses.Has(504)) && sound("unknown_statuses") {
		l.warn(field+"unknown_statuses", "leaves out 502 or 504, after which the app may still be working: the next delivery would run beside it")
	}
	if r.Preset != nil && r.Preset.Payments && r.Mode == ModeEnforce && r.OnUnknown == "retry" && sound("on_unknown", "provider", "mode") {
		l.warn(field+"on_unknown", "retry runs an event again when the answer to its last attempt was lost; %s is about payments, so let a witness tell whether the effect exists (on_unknown: witness), or a person (on_unknown: hold)", r.Provider)
	}
	if r.NeverRetries && r.Mode == ModeEnforce && said.OnStoreOutage != nil && r.OnStoreOutage == "refuse" {
		l.warn(field+"on_store_outage", "refuse loses the event where the sender never retries, as here")
	}
}
