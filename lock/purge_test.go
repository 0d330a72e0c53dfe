package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
)

// A backlog takes each for the removal of a record, and counts.
type backlog struct {
	lock.Catalog
	left    int
	each    time.Duration
	steps   int
	longest time.Duration // of a step
	took    time.Duration // in all
	err     error
}

func (b *backlog) Purge(_ context.Context, _ string, limit int) (lock.Purged, error) {
	n := min(limit, b.left)
	took := time.Duration(n) * b.each
	time.Sleep(took)
	b.left -= n
	b.steps++
	b.longest, b.took = max(b.longest, took), b.took+took
	return lock.Purged{Removed: n, More: n == limit}, b.err
}

func TestPurgeAll(t *testing.T) {
	for _, c := range []struct {
		name    string
		each    time.Duration
		longest time.Duration
		steps   int // at the most
	}{
		{"B59 a fast store is purged in large steps", time.Microsecond, 500 * time.Microsecond, 30},
		{"B59 a slower one in smaller steps", 30 * time.Microsecond, 10 * time.Millisecond, 150},
		{"B59 a slow one in the smallest", time.Millisecond, 125 * time.Millisecond, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backlog{left: 10_000, each: c.each}
				sum, start := 0, time.Now()
				err := lock.PurgeAll(t.Context(), b, "shop", 500, func(n int, err error) {
					sum += n
					if err != nil {
						t.Error(err)
					}
				})
				if err != nil || sum != 10_000 || b.left != 0 {
					t.Errorf("removed %d, left %d, %v", sum, b.left, err)
				}
				if b.longest > c.longest || b.steps > c.steps {
					t.Errorf("%d steps, the longest took %v", b.steps, b.longest)
				}
				if rate := 10_000 / time.Since(start).Seconds(); rate > 1050 {
					t.Errorf("it removed %.0f a second", rate)
				}
				if share := float64(b.took) / float64(time.Since(start)); share > 0.34 {
					t.Errorf("it had %.2f of the store's time", share)
				}
			})
		})
	}
	t.Run("a step that fails is the last, and what it removed is told", func(t *testing.T) {
		b := &backlog{left: 100, err: errors.New("cut off")}
		sum := 0
		if err := lock.PurgeAll(t.Context(), b, "shop", 500, func(n int, _ error) { sum += n }); !errors.Is(err, b.err) || sum != 100 || b.steps != 1 {
			t.Errorf("%d removed in %d steps, %v", sum, b.steps, err)
		}
	})
	t.Run("it ends with its context, also while it rests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			b := &backlog{left: 1_000_000, each: time.Millisecond}
			start := time.Now()
			err := lock.PurgeAll(ctx, b, "shop", 500, func(int, error) {})
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 1130*time.Millisecond {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
}
