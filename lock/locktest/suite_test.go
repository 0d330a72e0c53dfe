package locktest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/memlock"
)

const flawVariable = "LOCKTEST_FLAW"

// A flawed store makes one mistake that stores have made.
type flawed struct {
	*memlock.Store
	flaw string

	mu     sync.Mutex // guards cached
	cached map[lock.Key]lock.Record
}

var flaws = []string{
	"compares the token alone", "does not know its own change again", "answers in another order",
	"answers as if all were applied", "reads from a cache", "loses what follows a zero byte", "lists what is expired",
	"purges nothing",
}

func (f *flawed) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	batch = slices.Clone(batch)
	for i := range batch {
		c := &batch[i]
		switch f.flaw {
		case "compares the token alone":
			if stands := f.stands(c.Next.Key); c.Expect != lock.None && stands.Token == c.Next.Token {
				c.Expect = stands.Version
			}
		case "does not know its own change again":
			if f.stands(c.Next.Key).Version == c.Next.Version {
				return []lock.Result{{}}, nil
			}
		case "loses what follows a zero byte":
			text, _, _ := strings.Cut(string(c.Next.AnswerBody), "\x00")
			c.Next.AnswerBody = []byte(text)
		}
	}
	results, err := f.Store.Apply(ctx, batch)
	switch f.flaw {
	case "answers in another order":
		slices.Reverse(results)
	case "answers as if all were applied":
		for i := range results {
			results[i].Standing = batch[i].Next
		}
	}
	return results, err
}

func (f *flawed) stands(k lock.Key) lock.Record {
	records, err := f.Store.Read(context.Background(), []lock.Key{k})
	if err != nil {
		return lock.Record{}
	}
	return records[0]
}

func (f *flawed) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	records, err := f.Store.Read(ctx, keys)
	if f.flaw != "reads from a cache" {
		return records, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range records {
		if old, found := f.cached[keys[i]]; found {
			records[i] = old
		} else if r.Exists() {
			f.cached[keys[i]] = r
		}
	}
	return records, err
}

func (f *flawed) List(ctx context.Context, q lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	records, err := f.Store.List(ctx, q, after, limit)
	if f.flaw == "lists what is expired" && len(records) < limit {
		records = append(records, change("expired").Next)
	}
	return records, err
}

func (f *flawed) Purge(ctx context.Context, namespace string, limit int) (lock.Purged, error) {
	if f.flaw == "purges nothing" {
		return lock.Purged{}, nil
	}
	return f.Store.Purge(ctx, namespace, limit)
}

// The suite must fail each flawed store. Each runs in a process of its own.
func TestSuiteFindsFlaws(t *testing.T) {
	for _, flaw := range flaws {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlawedStore$")
			cmd.Env = append(os.Environ(), flawVariable+"="+flaw)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(string(out), "--- FAIL") {
				t.Errorf("a store that %s passes: %v\n%s", flaw, err, out)
			}
		})
	}
}

// TestFlawedStore runs the suite on the store with the flaw that the
// environment names; with none, on one that has no flaw.
func TestFlawedStore(t *testing.T) {
	locktest.Run(t, func(testing.TB) locktest.Fixture {
		s := memlock.New()
		return locktest.Fixture{
			Open: func(testing.TB) locktest.Store {
				return &flawed{Store: s.Sibling(), flaw: os.Getenv(flawVariable), cached: map[lock.Key]lock.Record{}}
			},
			Pass:   func(_ testing.TB, d time.Duration) { s.Advance(d) },
			Stored: func(testing.TB) int { return s.Len() },
		}
	})
}
