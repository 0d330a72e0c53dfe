package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
)

// A BackgroundFixture is an empty place for records, for Background.
type BackgroundFixture struct {
	// Open opens the place, as another process would each time.
	Open func(t testing.TB) Store
	// Expire makes n records out of the one done record that is there, in its
	// namespace, all past retention.
	Expire func(t testing.TB, n int)
	// Stored counts the records that take up room.
	Stored func(t testing.TB) int
	// N is how many expired records there are to be.
	N int
}

// Background shows that the purge of a large backlog is done by one of two
// replicas, in steps that are short enough for whatever limit the fixture's server
// sets to a statement, while claims are made; and that it removes nothing else.
func Background(t *testing.T, f BackgroundFixture) {
	at := &place{TB: t, s: open(t, Fixture{Open: f.Open})}
	at.applied(done(at.applied(begin("model")), "answer"))
	f.Expire(t, f.N)
	live := at.applied(begin("live"))
	alone := claims(t, at.s, "alone", 100, nil)

	var mu sync.Mutex // guards errs
	var errs []error
	var purged [2]atomic.Int64
	sum := func() int { return int(purged[0].Load() + purged[1].Load()) }
	var ends []func()
	for i := range purged {
		s := open(t, Fixture{Open: f.Open})
		g := lock.NewGate(s, lock.Options{StoreTimeout: 10 * time.Second, Observe: func(e lock.Event) {
			switch e.Kind {
			case lock.EventPurged:
				purged[i].Add(int64(e.N))
			case lock.EventBackgroundErr:
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, e.Err)
			}
		}})
		b := lock.StartBackground(g, s, lock.BackgroundOptions{Namespace: "suite"})
		ends = append(ends, func() {
			b.Close()
			if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	started, looked := time.Now(), time.Now()
	begun := 0
	// The model, the live one, the duty, and what was claimed meanwhile.
	left := func() int { return f.Stored(t) - 3 - len(alone) - begun }
	beside := claims(t, at.s, "beside", 0, func() bool {
		if time.Since(looked) > 500*time.Millisecond {
			looked = time.Now()
			if left() == 0 || time.Since(started) > 3*time.Minute {
				return true
			}
		}
		begun++
		return false
	})
	took := time.Since(started)
	for _, end := range ends {
		end()
	}
	t.Logf("%d records were removed in %v; begin and done took %v (p50) and %v (p99) meanwhile, %v and %v before",
		sum(), took.Round(time.Millisecond), quantile(beside, 0.5), quantile(beside, 0.99), quantile(alone, 0.5), quantile(alone, 0.99))

	if len(errs) > 0 {
		t.Errorf("%d errors, such as %v", len(errs), errs[0])
	}
	if purged[0].Load() > 0 && purged[1].Load() > 0 {
		t.Error("both replicas purged")
	}
	if n := left(); n != 0 {
		t.Errorf("%d records are stored that should not be", n)
	}
	// What a purge removed that was cut off is removed, and counted by nobody.
	if n := sum(); n > f.N || n < f.N*9/10 {
		t.Errorf("%d of %d are said to be removed", n, f.N)
	}
	if got := at.read(live.Key); got.Version != live.Version {
		t.Error("the claim that runs is gone")
	}
}

// claims begins and settles n events, or as many as come until over, and says how
// long each took.
func claims(t *testing.T, s Store, name string, n int, over func() bool) (took []time.Duration) {
	at := &place{TB: t, s: s}
	for i := 0; i < n || over != nil && !over(); i++ {
		start := time.Now()
		at.applied(done(at.applied(begin(fmt.Sprint(name, i))), "answer"))
		took = append(took, time.Since(start))
	}
	return took
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(time.Microsecond)
}
