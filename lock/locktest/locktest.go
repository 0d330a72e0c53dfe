// Package locktest is the conformance suite that every store passes.
//
// # Use
//
// A store's test says how to make an empty place for records, how to open it,
// and how to let time pass for what lies there:
//
//	func TestStore(t *testing.T) {
//		locktest.Run(t, func(t testing.TB) locktest.Fixture {
//			path := filepath.Join(t.TempDir(), "claims.db")
//			return locktest.Fixture{
//				Open: func(t testing.TB) locktest.Store { ... },
//				Pass: func(t testing.TB, d time.Duration) { ... },
//				Stored: func(t testing.TB) int { ... },
//			}
//		})
//	}
//
// The suite never asks which store it is: what one must do, all must.
//
// # Time
//
// Time passes by moving the records into the past, not by moving a clock: so a
// lease lapses, and a retention runs out, on any server. Durations in the
// suite are minutes and more, and are compared with some slack, so that a slow
// machine fails nothing.
//
// # Faults
//
// [Flaky] wraps a store and fails calls before or after their effect, or lets
// the effect come later, as a network does. It is meant for the tests of
// whatever stands on a store, and the suite's own check of linearizability
// uses it.
package locktest

import (
	"testing"
	"time"

	"oncegate/lock"
)

// A Store is both halves of one.
type Store interface {
	lock.Store
	lock.Catalog
}

// A Fixture is one empty place for records.
type Fixture struct {
	// Open opens the place, as another process would each time. The suite
	// closes what it opened; what was written stays.
	Open func(t testing.TB) Store
	// Pass lets d pass for all records that are there now: it moves every
	// moment of theirs into the past by d.
	Pass func(t testing.TB, d time.Duration)
	// Stored counts the records that take up room, past retention or not.
	Stored func(t testing.TB) int
}

// Run runs the suite. It asks for a new fixture for each case.
func Run(t *testing.T, fixture func(t testing.TB) Fixture) {
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"change", changeCases},
		{"idempotence", resendCases},
		{"batch", batchCases},
		{"time", timeCases},
		{"retention", retentionCases},
		{"bytes", byteCases},
		{"race", raceCases},
		{"life", lifeCases},
		{"list", listCases},
		{"purge", purgeCases},
		{"linearizability", linearCases},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					f := fixture(t)
					c.run(&place{TB: t, f: f, s: open(t, f)})
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*place)
}

// open opens the fixture and closes it when the test is over.
func open(t testing.TB, f Fixture) Store {
	t.Helper()
	s := f.Open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
