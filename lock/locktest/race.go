package locktest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"oncegate/lock"
)

var raceCases = []testCase{
	{"of many who begin one event, one does", func(p *place) {
		places := []*place{p, p.another()}
		for round := range 20 {
			text := fmt.Sprint("e", round)
			changes := make([]lock.Change, 16)
			results := make([]lock.Result, len(changes))
			var wg sync.WaitGroup
			for i := range changes {
				changes[i] = begin(text)
				wg.Go(func() { results[i] = trySend(places[i%2], changes[i]) })
			}
			wg.Wait()
			stands := p.read(key(text))
			winners := 0
			for i, r := range results {
				if r.Err != nil {
					p.Fatal(r.Err)
				}
				if r.Applied(changes[i]) {
					winners++
				}
				if r.Standing.Version != stands.Version {
					p.Fatalf("told %s, and there is %s", brief(r.Standing), brief(stands))
				}
			}
			if winners != 1 {
				p.Fatalf("%d began", winners)
			}
		}
	}},
	{"of many who begin over an expired record, one does", func(p *place) {
		places := []*place{p, p.another()}
		p.applied(done(p.applied(begin("e")), "old"))
		p.pass(2 * retain)
		var winners atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				c := begin("e")
				r := trySend(places[i%2], c)
				switch {
				case r.Err != nil:
					p.Error(r.Err)
				case r.Applied(c):
					winners.Add(1)
				case r.Standing.State != lock.StateRunning:
					p.Errorf("refused over %s", brief(r.Standing))
				}
			})
		}
		wg.Wait()
		if n := winners.Load(); n != 1 {
			p.Fatalf("%d began", n)
		}
	}},
	{"no change is lost among many writers", func(p *place) {
		places := []*place{p, p.another()}
		p.applied(begin("e"))
		const writers, writes = 8, 25
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for range writes {
					if err := addDelivery(places[i%2], key("e")); err != nil {
						p.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if r := p.read(key("e")); r.Deliveries != 1+writers*writes {
			p.Fatalf("%d of %d writes stand", r.Deliveries-1, writers*writes)
		}
	}},
	{"batches over the same keys in any order don't block each other", func(p *place) {
		places := []*place{p, p.another()}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for round := range 10 {
					var batch []lock.Change
					for k := range 20 {
						batch = append(batch, begin(fmt.Sprint(round, "-", k)))
					}
					if i%2 == 1 {
						slices.Reverse(batch)
					}
					results, err := places[i%2].s.Apply(p.Context(), batch)
					if err != nil {
						p.Error(err)
						return
					}
					for _, r := range results {
						if r.Err != nil || !r.Standing.Exists() {
							p.Errorf("result %s, %v", brief(r.Standing), r.Err)
						}
					}
				}
			})
		}
		wg.Wait()
	}},
	{"a read sees what was applied elsewhere", func(p *place) {
		other := p.another()
		r := p.applied(begin("e"))
		for i := range 50 {
			p.same(other.read(r.Key), r)
			r = p.applied(next(r, func(n *lock.Record) { n.Deliveries = i }))
			p, other = other, p
		}
	}},
}

// trySend applies one change; it may be called from any goroutine.
func trySend(p *place, c lock.Change) lock.Result {
	results, err := p.s.Apply(p.Context(), []lock.Change{c})
	if err != nil {
		return lock.Result{Err: err}
	}
	return results[0]
}

// addDelivery counts one delivery more, over as many refusals as others can
// cause and some to spare.
func addDelivery(p *place, k lock.Key) error {
	for range 5000 {
		records, err := p.s.Read(p.Context(), []lock.Key{k})
		if err != nil {
			return err
		}
		c := next(records[0], func(n *lock.Record) { n.Deliveries++ })
		r := trySend(p, c)
		if r.Err != nil || r.Applied(c) {
			return r.Err
		}
	}
	return errors.New("refused again and again, though what is read is what is expected")
}
