package locktest

import (
	"fmt"
	"sync"

	"oncegate/lock"
)

var purgeCases = []testCase{
	{"B59 what is past retention goes, and nothing else", func(p *place) {
		for _, k := range atRest {
			k.make(p, "old-"+k.name)
		}
		other := begin("old-done")
		other.Next.Namespace = "elsewhere"
		elsewhere := p.applied(done(p.applied(other), "x"))
		keep := []lock.Record{
			p.applied(begin("old-running")),
			p.applied(unknown(p.applied(begin("old-unknown")))),
		}
		forever := done(p.applied(begin("old-forever")), "x")
		forever.Next.Retain = 0
		keep = append(keep, p.applied(forever))
		p.pass(2 * retain)
		for _, k := range atRest {
			keep = append(keep, k.make(p, "young-"+k.name))
		}
		if n := p.purge("suite", 100); n > len(atRest) {
			p.Errorf("%d records were removed, not %d", n, len(atRest))
		}
		for _, r := range keep {
			if got := p.read(r.Key); got.Version != r.Version {
				p.Errorf("%s is gone", r.Text)
			}
		}
		if n := p.purge("elsewhere", 100); n > 1 {
			p.Errorf("%d records were removed from the other namespace", n)
		}
		p.same(p.read(elsewhere.Key), lock.Record{})
		if n := p.f.Stored(p.TB); n != len(keep) {
			p.Errorf("%d records are stored, not %d", n, len(keep))
		}
	}},
	{"a purge keeps to its limit", func(p *place) {
		for i := range 25 {
			p.applied(done(p.applied(begin(fmt.Sprint("old", i))), "x"))
		}
		p.pass(2 * retain)
		for i := range 25 {
			p.applied(begin(fmt.Sprint("young", i)))
		}
		for before := p.f.Stored(p.TB); ; {
			step, err := p.s.Purge(p.Context(), "suite", 10)
			if err != nil {
				p.Fatalf("purge: %v", err)
			}
			after := p.f.Stored(p.TB)
			if n := step.Removed; n > 10 || before-after > 10 || n != before-after {
				p.Fatalf("a purge of 10 says %d, and there are %d records less", n, before-after)
			}
			if before = after; !step.More {
				break
			}
		}
		if n := p.f.Stored(p.TB); n != 25 {
			p.Errorf("%d records are stored", n)
		}
		p.counts(map[lock.ScopeState]int{{Scope: "orders", State: lock.StateRunning}: 25})
	}},
	{"two purges and those who begin anew don't disturb each other", func(p *place) {
		const n = 60
		for i := range n {
			p.applied(done(p.applied(begin(fmt.Sprint("e", i))), "x"))
		}
		p.pass(2 * retain)
		places := []*place{p, p.another()}
		begun := make([]lock.Result, n)
		changes := make([]lock.Change, n)
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				for {
					step, err := places[i].s.Purge(p.Context(), "suite", 5)
					if err != nil {
						p.Errorf("purge: %v", err)
					}
					if err != nil || !step.More {
						return
					}
				}
			})
			wg.Go(func() {
				for k := i; k < n; k += 2 {
					changes[k] = begin(fmt.Sprint("e", k))
					begun[k] = trySend(places[i], changes[k])
				}
			})
		}
		wg.Wait()
		for k, r := range begun {
			if r.Err != nil || !r.Applied(changes[k]) {
				p.Fatalf("begin beside a purge: %s, %v", brief(r.Standing), r.Err)
			}
			if p.read(changes[k].Next.Key).Version != changes[k].Next.Version {
				p.Fatal("a purge removed what was begun anew")
			}
		}
	}},
}

// purge removes all that is past retention, and returns how much that was.
func (p *place) purge(namespace string, step int) (sum int) {
	p.Helper()
	for more := true; more; {
		purged, err := p.s.Purge(p.Context(), namespace, step)
		if err != nil {
			p.Fatalf("purge: %v", err)
		}
		sum, more = sum+purged.Removed, purged.More
	}
	return sum
}
