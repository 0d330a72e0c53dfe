package faults_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/e2e/faults"
)

var (
	seed     = flag.Int64("seed", 0, "run the world of this seed alone")
	first    = flag.Int64("first", 1, "the first seed, where worlds run one after the other")
	stores   = flag.String("store", "sqlite,postgres,mariadb,redis", "the stores")
	policies = flag.String("policy", "retry,hold,witness", "the policies")
	during   = flag.Duration("for", 0, "go on for this long; 0: one world for each store, with the policies in turn")
	events   = flag.Int("events", 40, "histories in each world")
	report   = flag.String("report", "", "a file for the figures, as Markdown")
)

// TestHistories judges every event of worlds in which things break.
func TestHistories(t *testing.T) {
	var mu sync.Mutex // guards cells
	cells := map[faults.Cell]*faults.Figures{}
	t.Cleanup(func() {
		text := fmt.Sprintf("Seeds from %d on, in each row as many as worlds. Partitions by %s.\n\n%s", *first, faults.Partitions(), faults.Markdown(cells))
		t.Log("\n" + text)
		if *report != "" {
			if err := os.WriteFile(*report, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	for i, name := range strings.Split(*stores, ",") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := faults.NewStore(t, name)
			end := time.Now().Add(*during)
			for next := *first; ; next++ {
				for _, policy := range chosen(i) {
					o := faults.Options{Binary: &binary, Store: store, Policy: faults.Policy(policy), Seed: next, Events: *events}
					if *seed != 0 {
						o.Seed = *seed
					}
					f := judge(t, o)
					mu.Lock()
					c := faults.Cell{Store: name, Policy: o.Policy}
					if cells[c] == nil {
						cells[c] = &faults.Figures{}
					}
					cells[c].Add(f)
					mu.Unlock()
				}
				if *seed != 0 || time.Now().After(end) {
					return
				}
			}
		})
	}
}

// chosen returns the policies for the i-th store.
func chosen(i int) []string {
	all := strings.Split(*policies, ",")
	if *during > 0 || *seed != 0 {
		return all
	}
	return all[i%len(all):][:1]
}

// judge runs one world, and fails the test with what was violated.
func judge(t *testing.T, o faults.Options) (f *faults.Figures) {
	f = &faults.Figures{}
	t.Run(fmt.Sprintf("%s/%d", o.Policy, o.Seed), func(t *testing.T) {
		var record *faults.Record
		record, f = faults.Live(t, o)
		found := faults.Judge(record)
		f.Violations = len(found)
		for _, v := range found {
			t.Error(v)
		}
		if len(found) > 0 {
			t.Logf("%s\nagain: go test ./faults -run TestHistories -seed %d -store %s -policy %s -events %d",
				faults.Story(record, found[0].Event), o.Seed, o.Store.Name, o.Policy, o.Events)
		}
	})
	return f
}
