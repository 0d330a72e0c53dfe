package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Figures are what happened in one world or many.
type Figures struct {
	Worlds, Events, Deliveries, Runs, Effects int
	// Again is how many runs came after an effect, and Doubtful how many events
	// had a run that did not end with a whole 2xx.
	Again, Doubtful int
	// Words are the operator's, and Yes, No and Untold the witness's.
	Words, Yes, No, Untold int
	Struck                 map[string]int
	Violations             int
}

func (w *world) figures() *Figures {
	r := w.record
	f := &Figures{Worlds: 1, Events: len(r.Events), Deliveries: len(r.Deliveries), Runs: len(r.Runs), Struck: w.struck, Words: w.decider.words}
	f.Yes, f.No, f.Untold = int(w.witness.yes.Load()), int(w.witness.no.Load()), int(w.witness.untold.Load())
	had, doubtful := map[string]bool{}, map[string]bool{}
	for _, run := range r.Runs {
		if had[run.Event] {
			f.Again++
		}
		if !run.Effect.IsZero() {
			f.Effects++
			had[run.Event] = true
		}
		if !EndingOf(r.Seed, run.Event, run.Attempt).Done() || run.Ended.IsZero() {
			doubtful[run.Event] = true
		}
	}
	f.Doubtful = len(doubtful)
	return f
}

// Add adds another's figures.
func (f *Figures) Add(o *Figures) {
	f.Worlds += o.Worlds
	f.Events += o.Events
	f.Deliveries += o.Deliveries
	f.Runs += o.Runs
	f.Effects += o.Effects
	f.Again += o.Again
	f.Doubtful += o.Doubtful
	f.Words += o.Words
	f.Yes += o.Yes
	f.No += o.No
	f.Untold += o.Untold
	f.Violations += o.Violations
	if f.Struck == nil {
		f.Struck = map[string]int{}
	}
	for what, n := range o.Struck {
		f.Struck[what] += n
	}
}

// A Cell is a store under a policy.
type Cell struct {
	Store  string
	Policy Policy
}

// Markdown writes the figures of many cells as tables.
func Markdown(cells map[Cell]*Figures) string {
	var b strings.Builder
	total := &Figures{}
	row := func(store, policy string, f *Figures) {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n",
			store, policy, f.Worlds, f.Events, f.Deliveries, f.Runs, f.Doubtful, f.Again, f.Words, f.Yes+f.No, f.Violations)
	}
	b.WriteString("| store | on_unknown | worlds | histories | deliveries | runs | in doubt | runs after an effect | operator's words | witness's words | violations |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	sorted := slices.SortedFunc(maps.Keys(cells), func(a, b Cell) int {
		return strings.Compare(a.Store+string(a.Policy), b.Store+string(b.Policy))
	})
	for _, c := range sorted {
		row(c.Store, string(c.Policy), cells[c])
		total.Add(cells[c])
	}
	row("all", "", total)
	b.WriteString("\n| what was broken | times |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(total.Struck)) {
		fmt.Fprintf(&b, "| %s | %d |\n", what, total.Struck[what])
	}
	return b.String()
}
