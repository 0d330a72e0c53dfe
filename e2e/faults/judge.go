package faults

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// An Invariant is what holds for every history.
type Invariant string

// The invariants.
const (
	NoFalseAck  Invariant = "no 2xx without an effect"
	NoneLost    Invariant = "none lost after the retries end"
	OneEffect   Invariant = "one effect under hold and witness"
	Justified   Invariant = "no second run without a fault"
	Announced   Invariant = "each run is announced by a higher number"
	Counted     Invariant = "each possible second run is counted"
	NoOverlap   Invariant = "no run while another may still be running"
	SameReplays Invariant = "replays are the same, byte by byte"
)

// A Violation is an invariant that an event's history breaks.
type Violation struct {
	Invariant Invariant
	Event     string
	Text      string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Invariant, v.Event, v.Text) }

// Judge returns all violations.
func Judge(r *Record) []Violation {
	j := &judge{Record: r, runs: map[string][]*Run{}, deliveries: map[string][]*Delivery{}, late: map[turn]bool{}}
	for _, run := range r.Runs {
		j.runs[run.Event] = append(j.runs[run.Event], run)
	}
	for _, d := range r.Deliveries {
		j.deliveries[d.Event] = append(j.deliveries[d.Event], d)
	}
	for _, e := range r.Exchanges {
		j.late[turn{e.Event, e.Attempt}] = e.Replied.IsZero() || e.Replied.Sub(e.Asked) > upstreamTimeout/2
	}
	for _, event := range r.Events {
		j.acknowledged(event)
		j.effects(event)
		j.order(event)
		j.replays(event)
	}
	j.counts()
	return j.found
}

type judge struct {
	*Record
	runs       map[string][]*Run
	deliveries map[string][]*Delivery
	// late says which runs were so slow, by the wire's clock, that a gate that is
	// as short of the processor may have given them up.
	late  map[turn]bool
	found []Violation
}

type turn struct {
	event   string
	attempt int
}

func (j *judge) violated(i Invariant, event, format string, args ...any) {
	j.found = append(j.found, Violation{i, event, fmt.Sprintf(format, args...)})
}

// acknowledged holds what senders were told against what was there by then.
func (j *judge) acknowledged(event string) {
	ok := false
	for _, d := range j.deliveries[event] {
		if !d.OK() {
			continue
		}
		ok = true
		if !slices.ContainsFunc(j.runs[event], func(r *Run) bool { return !r.Effect.IsZero() && r.Effect.Before(d.Answered) }) {
			j.violated(NoFalseAck, event, "%d %s of gate %d", d.Status, d.Result, d.Gate)
		}
	}
	if !ok {
		j.violated(NoneLost, event, "%d deliveries, and no 2xx; the last one was answered %s", len(j.deliveries[event]), last(j.deliveries[event]))
	}
}

func last(all []*Delivery) string {
	if len(all) == 0 {
		return "never"
	}
	d := all[len(all)-1]
	return fmt.Sprintf("%d %s", d.Status, d.Result)
}

func (j *judge) effects(event string) {
	n := 0
	for _, r := range j.runs[event] {
		if !r.Effect.IsZero() {
			n++
		}
	}
	if n > 1 && j.Policy != Retry {
		j.violated(OneEffect, event, "%d effects", n)
	}
}

// order looks at each run and the one before it.
func (j *judge) order(event string) {
	runs := j.runs[event]
	if len(runs) > 0 && runs[0].Attempt < 1 {
		j.violated(Announced, event, "the first run has number %d", runs[0].Attempt)
	}
	for i := 1; i < len(runs); i++ {
		before, after := runs[i-1], runs[i]
		if after.Attempt <= before.Attempt {
			j.violated(Announced, event, "a run with number %d, and then one with %d", before.Attempt, after.Attempt)
		}
		if end := j.end(before); end.After(after.Began) && !j.leapt(before.Began.Add(-lease), after.Began) {
			j.violated(NoOverlap, event, "attempt %d begins %v before attempt %d ends", after.Attempt, end.Sub(after.Began), before.Attempt)
		}
		if !j.justified(before, after) {
			j.violated(Justified, event, "attempt %d ended well (%s), nothing was broken until attempt %d", before.Attempt,
				EndingOf(j.Seed, event, before.Attempt).Name, after.Attempt)
		}
	}
}

// end returns when the app was through with a run, at the latest.
func (j *judge) end(r *Run) time.Time {
	if !r.Ended.IsZero() {
		return r.Ended
	}
	for _, died := range j.AppDied {
		if died.After(r.Began) {
			return died
		}
	}
	return r.Began.Add(appLimit)
}

// slack is for what the judge's clock sees later than it happened.
const slack = 300 * time.Millisecond

// justified reports whether there is a reason for the second of two runs.
func (j *judge) justified(before, after *Run) bool {
	if !EndingOf(j.Seed, before.Event, before.Attempt).Clean() || before.Ended.IsZero() || before.Effect.IsZero() {
		return true
	}
	if j.late[turn{before.Event, before.Attempt}] {
		return true
	}
	for _, t := range j.Troubles {
		if !t.Harmless && (t.Gate == before.Gate || t.Gate < 0) && t.From.Before(after.Began) && t.To.After(before.Began.Add(-slack)) {
			return true
		}
	}
	// A leap takes a claim from a live attempt, which may have it for a lease before
	// it runs. One that is done it leaves.
	return j.leapt(before.Began.Add(-lease-slack), before.Ended.Add(slack))
}

// leapt reports whether the store's clock leapt between two moments.
func (j *judge) leapt(from, to time.Time) bool {
	return slices.ContainsFunc(j.Moves, func(m Move) bool { return m.Leap && m.From.Before(to) && m.To.After(from) })
}

// replays compares what deliveries were answered from the store.
func (j *judge) replays(event string) {
	var first *Delivery
	for _, d := range j.deliveries[event] {
		if !d.OK() {
			continue
		}
		if !j.known(event, d) {
			j.violated(SameReplays, event, "%s was answered %q, which is no answer of the app's", d.Result, d.Body)
			return
		}
		// Where only one run can have answered, its own sender gets the same.
		alone := len(j.runs[event]) == 1 && !j.Decided[event] && j.Policy != Witness
		if d.Result != "replay" && d.Result != "waited" && !alone {
			continue
		}
		if first != nil && (first.Status != d.Status || !bytes.Equal(first.Body, d.Body)) {
			j.violated(SameReplays, event, "%d %q, and then %d %q", first.Status, first.Body, d.Status, d.Body)
			return
		}
		first = d
	}
}

// known reports whether the answer is one that somebody gave for the event.
func (j *judge) known(event string, d *Delivery) bool {
	if len(d.Body) == 0 {
		return j.Policy == Witness && d.Result != "fresh"
	}
	if string(d.Body) == operatorsAnswer {
		return j.Decided[event]
	}
	return slices.ContainsFunc(j.runs[event], func(r *Run) bool { return string(d.Body) == receipt(r.ID) })
}

// restless is how long after a gate's start the app may still hear of the
// process before it.
const restless = 2*mostDelay + slack

// counts wants each run that came after an effect in the metric of the process
// that forwarded it.
func (j *judge) counts() {
	for _, l := range j.Lives {
		for _, c := range l.Counted {
			n := 0
			for _, event := range j.Events {
				for i, r := range j.runs[event] {
					again := slices.ContainsFunc(j.runs[event][:i], func(b *Run) bool { return !b.Effect.IsZero() && b.Effect.Before(r.Began) })
					if again && r.Gate == l.Gate && r.Began.After(l.From.Add(restless)) && r.Began.Before(c.At) {
						n++
					}
				}
			}
			if n > c.N {
				j.violated(Counted, "all", "gate %d counted %d, and forwarded %d", l.Gate, c.N, n)
			}
		}
	}
}
