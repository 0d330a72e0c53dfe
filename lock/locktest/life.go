package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oncegate/lock"
)

var lifeCases = []testCase{
	{"what was applied is there when the store is opened again", func(p *place) {
		var want []lock.Record
		for i := range 20 {
			r := p.applied(begin(fmt.Sprint("e", i)))
			if i%2 == 0 {
				r = p.applied(done(r, "x"))
			}
			want = append(want, r)
		}
		first := p.f.Open(p.TB)
		if err := first.Close(); err != nil {
			p.Fatal(err)
		}
		again := p.another()
		for _, r := range want {
			p.same(again.read(r.Key), r)
		}
	}},
	{"a context that is over changes nothing", func(p *place) {
		ctx, cancel := context.WithCancel(p.Context())
		cancel()
		if _, err := p.s.Apply(ctx, []lock.Change{begin("e")}); !errors.Is(err, lock.ErrUnavailable) {
			p.Errorf("apply: %v", err)
		}
		if _, err := p.s.Read(ctx, []lock.Key{key("e")}); !errors.Is(err, lock.ErrUnavailable) {
			p.Errorf("read: %v", err)
		}
		p.same(p.read(key("e")), lock.Record{})
	}},
	{"B34 calls that are cut off break nothing", func(p *place) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 75 {
					p.cutOff(fmt.Sprint(i, "-", j), time.Duration(j)*10*time.Microsecond)
				}
			})
		}
		wg.Wait()
		for i := range 50 {
			r := p.applied(begin(fmt.Sprint("after", i)))
			p.applied(done(r, "x"))
		}
	}},
	{"close waits for the calls under way and refuses those that come later", func(p *place) {
		s := p.f.Open(p.TB)
		changes := make([]lock.Change, 20)
		results := make([]lock.Result, len(changes))
		var wg sync.WaitGroup
		for i := range changes {
			changes[i] = begin(fmt.Sprint("e", i))
			wg.Go(func() { results[i] = trySend(&place{TB: p.TB, s: s}, changes[i]) })
		}
		if err := s.Close(); err != nil {
			p.Fatal(err)
		}
		wg.Wait()
		for i, r := range results {
			stands := p.read(changes[i].Next.Key)
			switch {
			case r.Err == nil && stands.Version != changes[i].Next.Version:
				p.Fatal("a change was applied and is gone")
			case r.Err != nil && !errors.Is(r.Err, lock.ErrUnavailable):
				p.Fatalf("a call beside close: %v", r.Err)
			}
		}
		if r := trySend(&place{TB: p.TB, s: s}, begin("late")); !errors.Is(r.Err, lock.ErrUnavailable) {
			p.Fatalf("apply after close: %v", r.Err)
		}
		if _, err := s.Read(p.Context(), []lock.Key{key("late")}); !errors.Is(err, lock.ErrUnavailable) {
			p.Fatalf("read after close: %v", err)
		}
		if err := s.Close(); err != nil {
			p.Fatalf("second close: %v", err)
		}
	}},
}

// cutOff begins an event with hardly any time for it, and checks that what the
// store says is so, and that the same change can be sent again.
func (p *place) cutOff(text string, after time.Duration) {
	ctx, cancel := context.WithTimeout(p.Context(), after)
	defer cancel()
	c := begin(text)
	results, err := p.s.Apply(ctx, []lock.Change{c})
	if err != nil && !errors.Is(err, lock.ErrUnavailable) {
		p.Errorf("a call that was cut off: %v", err)
	}
	if err == nil && results[0].Err == nil && !results[0].Applied(c) {
		p.Errorf("%q refused: %s", text, brief(results[0].Standing))
	}
	if _, err := p.s.Read(ctx, []lock.Key{c.Next.Key}); err != nil && !errors.Is(err, lock.ErrUnavailable) {
		p.Errorf("a read that was cut off: %v", err)
	}
	if r := trySend(p, c); r.Err != nil || !r.Applied(c) {
		p.Errorf("sent again: %s, %v", brief(r.Standing), r.Err)
	}
}
