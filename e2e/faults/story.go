package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Story tells what happened to an event and around it, in order.
func Story(r *Record, event string) string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	tell := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			lines = append(lines, line{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, run := range r.Runs {
		if run.Event != event {
			continue
		}
		tell(run.Began, "attempt %d by gate %d begins: %s", run.Attempt, run.Gate, EndingOf(r.Seed, event, run.Attempt).Name)
		tell(run.Effect, "attempt %d has its effect", run.Attempt)
		tell(run.Ended, "attempt %d ends", run.Attempt)
	}
	for _, d := range r.Deliveries {
		if d.Event == event {
			tell(d.Answered, "gate %d answers %d %s %.60q, %v after it was sent", d.Gate, d.Status, d.Result, d.Body, d.Answered.Sub(d.Sent).Round(ms))
		}
	}
	for _, e := range r.Exchanges {
		if e.Event == event {
			tell(e.Asked, "the wire carries attempt %d", e.Attempt)
			tell(e.Replied, "the wire carries what the app says to attempt %d", e.Attempt)
		}
	}
	for _, t := range r.Troubles {
		tell(t.From, "- %s", t.What)
		tell(t.To, "- over: %s", t.What)
	}
	for _, m := range r.Moves {
		tell(m.To, "- the store's clock has gone %v forward", m.By)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%8v %s\n", l.at.Sub(lines[0].at).Round(ms), l.text)
	}
	return b.String()
}
