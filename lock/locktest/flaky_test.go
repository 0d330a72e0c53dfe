package locktest_test

import (
	"errors"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/memlock"
)

func change(text string) lock.Change {
	return lock.Change{Next: lock.Record{
		Key: lock.KeyOf("n", "s", text), State: lock.StateRunning, Version: lock.NewVersion(), Lease: time.Minute,
	}}
}

func TestFlaky(t *testing.T) {
	for _, c := range []struct {
		fault            locktest.Fault
		applied, flushed bool // at once, and after Flush
		failed, second   bool // the call, and all but its second result
		readFails        bool
	}{
		{fault: locktest.NoFault, applied: true, flushed: true},
		{fault: locktest.Before, failed: true, readFails: true},
		{fault: locktest.After, applied: true, flushed: true, failed: true, readFails: true},
		{fault: locktest.Late, flushed: true, failed: true, readFails: true},
		{fault: locktest.Partly, applied: true, flushed: true, second: true, readFails: true},
	} {
		below := memlock.New()
		f := locktest.NewFlaky(below, locktest.Each(c.fault, c.fault))
		batch := []lock.Change{change("a"), change("b")}
		results, err := f.Apply(t.Context(), batch)
		if errors.Is(err, lock.ErrUnavailable) != c.failed {
			t.Errorf("%v: apply: %v", c.fault, err)
		}
		if c.second && (results[0].Err == nil || !results[1].Applied(batch[1])) {
			t.Errorf("%v: results are %v", c.fault, results)
		}
		stands := func() bool {
			records, err := below.Read(t.Context(), []lock.Key{batch[0].Next.Key, batch[1].Next.Key})
			return err == nil && records[0].Exists() && records[1].Exists()
		}
		if stands() != c.applied {
			t.Errorf("%v: applied is %v", c.fault, !c.applied)
		}
		if _, err := f.Read(t.Context(), nil); (err != nil) != c.readFails {
			t.Errorf("%v: read: %v", c.fault, err)
		}
		if err := f.Flush(t.Context()); err != nil || stands() != c.flushed {
			t.Errorf("%v: after flush, applied is %v; %v", c.fault, !c.flushed, err)
		}
	}
}

func TestFlakyLateComesBeforeTheNextCall(t *testing.T) {
	f := locktest.NewFlaky(memlock.New(), locktest.Each(locktest.Late))
	late, next := change("e"), change("e")
	if _, err := f.Apply(t.Context(), []lock.Change{late}); err == nil {
		t.Fatal("a late call did not fail")
	}
	results, err := f.Apply(t.Context(), []lock.Change{next})
	if err != nil || !results[0].Applied(late) {
		t.Fatal(results, err)
	}
}
