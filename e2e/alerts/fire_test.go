package alerts

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// A story is what Prometheus sees of oncegate, minute by minute.
type story struct {
	name string
	// series are in the notation of Prometheus's own tests, without the load.
	series string
	// until is when it ends, every how often the rule is looked at.
	until, every time.Duration
	// fires is the alert with its labels where it fires in the end; empty where it
	// never fires at all.
	fires string
}

// Each alert fires when it should, after its time and not before, and not when all
// is well.
func TestAlertsFire(t *testing.T) {
	told := map[string]bool{}
	for _, g := range alertRules(t).Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			fires, quiet := 0, 0
			for _, s := range stories[r.Alert] {
				t.Run(r.Alert+": "+s.name, func(t *testing.T) { s.tell(t, r) })
				if s.fires == "" {
					quiet++
				} else {
					fires++
				}
			}
			if fires == 0 || quiet == 0 {
				t.Errorf("%s: %d stories in which it fires, %d in which it doesn't", r.Alert, fires, quiet)
			}
			told[r.Alert] = true
		}
	}
	for alert := range stories {
		if !told[alert] {
			t.Errorf("there is no alert %s", alert)
		}
	}
}

// tell evaluates the rule over the whole story, as Prometheus would.
func (s *story) tell(t *testing.T, r *rulefmt.Rule) {
	every := s.every
	if every == 0 {
		every = time.Minute
	}
	load := fmt.Sprint("load ", every)
	for line := range strings.Lines(s.series) {
		if line = strings.TrimSpace(line); line != "" {
			load += "\n  " + line
		}
	}
	storage := promqltest.LoadedStorage(t, load)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor),
		labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	var began time.Duration
	var last []*rules.Alert
	for at := time.Duration(0); at <= s.until; at += every {
		if _, err := rule.Eval(context.Background(), 0, time.Unix(0, 0).Add(at), rules.EngineQueryFunc(engine, storage), &url.URL{}, 0); err != nil {
			t.Fatal(err)
		}
		if len(last) == 0 {
			began = at
		}
		last = rule.ActiveAlerts()
		if firing(last) && (s.fires == "" || at-began < time.Duration(r.For)) {
			t.Fatalf("it fires after %s, which is %s after it began: %v", at, at-began, last[0].Labels)
		}
	}
	if s.fires == "" {
		return
	}
	if len(last) != 1 || !firing(last) {
		t.Fatalf("in the end it does not fire, or not alone: %+v", last)
	}
	if got := withoutName(last[0].Labels, r.Labels); got != s.fires {
		t.Errorf("it fires for %s, want %s", got, s.fires)
	}
	if summary := last[0].Annotations.Get("summary"); summary == "" || strings.Contains(summary, "error expanding") || strings.Contains(summary, "<no value>") {
		t.Errorf("it says %q", summary)
	}
}

func firing(alerts []*rules.Alert) bool {
	return slices.ContainsFunc(alerts, func(a *rules.Alert) bool { return a.State == rules.StateFiring })
}

// withoutName are an alert's labels but for those that the rule gives it.
func withoutName(l labels.Labels, given map[string]string) string {
	b := labels.NewBuilder(l).Del(labels.AlertName)
	for name := range given {
		b.Del(name)
	}
	return b.Labels().String()
}
