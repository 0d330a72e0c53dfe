package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
)

// A slow store takes its time for a trip, and writes down what was in it.
type slow struct {
	lock.Store
	takes  time.Duration
	refuse string // a text that no trip may contain
	mu     sync.Mutex
	trips  [][]string
	cut    int // trips that were cut short
}

var errRefused = errors.New("refused by the server")

func (s *slow) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	var texts []string
	for i := range batch {
		texts = append(texts, batch[i].Next.Text)
	}
	s.mu.Lock()
	s.trips = append(s.trips, texts)
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		s.mu.Lock()
		s.cut++
		s.mu.Unlock()
		return nil, ctx.Err()
	}
	if s.refuse != "" && slices.Contains(texts, s.refuse) {
		return nil, errRefused
	}
	return s.Store.Apply(ctx, batch)
}

func (s *slow) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	time.Sleep(s.takes)
	return s.Store.Read(ctx, keys)
}

// beginOf is a change that makes a record; settleOf one that changes it.
func beginOf(id string) lock.Change {
	i := item(id)
	return lock.Change{Next: lock.Record{Key: i.Key, Text: id, State: lock.StateRunning, Attempt: 1, Version: lock.NewVersion(), Lease: time.Minute}}
}

func settleOf(r *lock.Record) lock.Change {
	next := *r
	next.Version, next.State, next.Retain = lock.NewVersion(), lock.StateReleased, time.Hour
	return lock.Change{Expect: r.Version, Next: next}
}

func TestGroup(t *testing.T) {
	group := func(r *rig, s *slow) *lock.Grouped {
		s.Store = r.store
		return lock.Group(s, 2*time.Second, func(lock.Event) {})
	}

	bubble(t, "an idle store is asked at once, and what comes meanwhile shares the next trip", func(t *testing.T, r *rig) {
		s := &slow{takes: 100 * time.Millisecond}
		g := group(r, s)
		var all sync.WaitGroup
		for i := range 51 {
			all.Go(func() {
				c := beginOf(fmt.Sprint("evt_", i))
				results, err := g.Apply(context.Background(), []lock.Change{c})
				if err != nil || !results[0].Applied(c) {
					t.Errorf("%v", err)
				}
			})
			if i == 0 {
				synctest.Wait()
			}
		}
		start := time.Now()
		all.Wait()
		if len(s.trips) != 2 || len(s.trips[0]) != 1 || len(s.trips[1]) != 50 || time.Since(start) > 200*time.Millisecond {
			t.Errorf("%d trips in %v", len(s.trips), time.Since(start))
		}
	})

	bubble(t, "a key never travels twice in a trip, and its changes are all made", func(t *testing.T, r *rig) {
		s := &slow{takes: 10 * time.Millisecond}
		g := group(r, s)
		var all sync.WaitGroup
		var applied int
		var mu sync.Mutex
		for range 20 {
			all.Go(func() {
				c := beginOf("evt_1")
				results, err := g.Apply(context.Background(), []lock.Change{c})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if results[0].Applied(c) {
					applied++
				}
			})
		}
		all.Wait()
		for _, trip := range s.trips {
			if len(trip) != 1 {
				t.Errorf("a trip of %v", trip)
			}
		}
		if applied != 1 {
			t.Errorf("%d began", applied)
		}
	})

	bubble(t, "B57 those who settle do not wait for those who begin", func(t *testing.T, r *rig) {
		s := &slow{takes: 10 * time.Millisecond}
		g := group(r, s)
		mine := beginOf("mine")
		held, err := g.Apply(context.Background(), []lock.Change{mine})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 3000 {
			all.Go(func() {
				if _, err := g.Apply(context.Background(), []lock.Change{beginOf(fmt.Sprint("evt_", i))}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if _, err := g.Apply(context.Background(), []lock.Change{settleOf(&held[0].Standing)}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 25*time.Millisecond {
			t.Errorf("settled after %v", took)
		}
		all.Wait()
		for _, trip := range s.trips {
			if len(trip) > 256 {
				t.Errorf("a trip of %d", len(trip))
			}
		}
	})

	bubble(t, "B57 those who write do not wait for those who read", func(t *testing.T, r *rig) {
		s := &slow{takes: time.Second}
		g := group(r, s)
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { _, _ = g.Read(context.Background(), []lock.Key{item(fmt.Sprint(i)).Key}) })
		}
		synctest.Wait()
		start := time.Now()
		if _, err := g.Apply(context.Background(), []lock.Change{beginOf("evt_1")}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("written after %v", took)
		}
		all.Wait()
	})

	bubble(t, "a caller that goes while it waits is not in the trip, and one that leads makes it", func(t *testing.T, r *rig) {
		s := &slow{takes: 900 * time.Millisecond}
		g := group(r, s)
		var all sync.WaitGroup
		apply := func(id string, patience time.Duration, want error) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if _, err := g.Apply(ctx, []lock.Change{beginOf(id)}); !errors.Is(err, want) {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		apply("first", time.Minute, nil)
		apply("gone", 500*time.Millisecond, context.DeadlineExceeded)
		apply("going", 1500*time.Millisecond, context.DeadlineExceeded)
		apply("stays", time.Minute, nil)
		all.Wait()
		if s.cut != 0 || !slices.Equal(s.trips[1], []string{"going", "stays"}) {
			t.Errorf("%d trips cut short, %v", s.cut, s.trips)
		}
	})

	bubble(t, "one caller's bad change is not the others' failure", func(t *testing.T, r *rig) {
		s := &slow{takes: 10 * time.Millisecond, refuse: "evt_3"}
		g := group(r, s)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				id := fmt.Sprint("evt_", i)
				_, err := g.Apply(context.Background(), []lock.Change{beginOf(id)})
				if (id == "evt_3") != (err != nil) {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		all.Wait()
	})

	bubble(t, "B13 what is too much for one trip makes several", func(t *testing.T, r *rig) {
		const mib = 1 << 20
		for _, c := range []struct{ changes, request, trips int }{{1024, 0, 1}, {1025, 0, 2}, {10_000, 0, 10}, {10, mib, 4}, {3, 5 * mib, 3}} {
			s := &slow{takes: 10 * time.Millisecond}
			g := group(r, s)
			batch := make([]lock.Change, c.changes)
			for i := range batch {
				batch[i] = beginOf(fmt.Sprint(c.changes, " evt_", i))
				batch[i].Next.Request = make([]byte, c.request)
			}
			results, err := g.Apply(context.Background(), batch)
			if err != nil || len(results) != len(batch) {
				t.Fatalf("%d results, %v", len(results), err)
			}
			keys := make([]lock.Key, len(batch))
			for i := range results {
				if keys[i] = batch[i].Next.Key; !results[i].Applied(batch[i]) {
					t.Errorf("%d of %+v was not made", i, c)
				}
			}
			if len(s.trips) != c.trips {
				t.Errorf("%+v: %d trips", c, len(s.trips))
			}
			records, err := g.Read(context.Background(), keys)
			if err != nil || len(records) != len(keys) || records[len(keys)-1].Version != batch[len(keys)-1].Next.Version {
				t.Errorf("%+v: read %d, %v", c, len(records), err)
			}
		}
	})
}
