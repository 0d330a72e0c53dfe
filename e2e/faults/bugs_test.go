package faults_test

import (
	"slices"
	"testing"
	"time"

	"oncegate/e2e/faults"
	"oncegate/e2e/harness"
	"oncegate/internal/bug"
)

// TestBugsAreFound shows that what is judged can fail: a binary with one
// deliberate mistake breaks the invariant that the mistake is about.
func TestBugsAreFound(t *testing.T) {
	wrong := harness.Binary{Tags: bug.Tag}
	t.Cleanup(func() { wrong.Remove(t) })
	for _, c := range []struct {
		bug    bug.Bug
		policy faults.Policy
		breaks faults.Invariant
	}{
		{bug.UnknownIsDone, faults.Retry, faults.NoFalseAck},
		{bug.NeverAgain, faults.Retry, faults.NoneLost},
		{bug.HoldRuns, faults.Hold, faults.OneEffect},
		{bug.EarlyNo, faults.Witness, faults.OneEffect},
		{bug.LateRenewal, faults.Retry, faults.NoneLost},
		{bug.DoneAgain, faults.Retry, faults.Justified},
		{bug.SameNumber, faults.Retry, faults.Announced},
		{bug.Uncounted, faults.Retry, faults.Counted},
		{bug.BlindTakeover, faults.Retry, faults.NoOverlap},
		{bug.EmptyReplay, faults.Retry, faults.SameReplays},
	} {
		t.Run(string(c.bug), func(t *testing.T) {
			t.Parallel()
			store := faults.NewStore(t, "sqlite")
			var found []faults.Violation
			for _, seed := range []int64{3, 7, 11, 15} { // calm ones: the app's endings are enough
				record, _ := faults.Live(t, faults.Options{
					Binary: &wrong, Store: store, Policy: c.policy, Seed: seed, Events: 40,
					Env: []string{bug.Variable + "=" + string(c.bug)}, Retries: 10 * time.Second,
				})
				found = faults.Judge(record)
				i := slices.IndexFunc(found, func(v faults.Violation) bool { return v.Invariant == c.breaks })
				if i >= 0 {
					t.Logf("found: %v\n%s", found[i], faults.Story(record, found[i].Event))
					return
				}
			}
			t.Errorf("nothing violates %q; found %v", c.breaks, found)
		})
	}
}
