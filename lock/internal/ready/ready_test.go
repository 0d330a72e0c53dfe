package ready

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := New(), 0
		failure := errors.New("not yet")
		work := func() error {
			time.Sleep(time.Second)
			if tries++; tries == 1 {
				return failure
			}
			return nil
		}
		if err := r.Do(t.Context(), work); !errors.Is(err, failure) {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := r.Do(t.Context(), work); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := r.Do(ctx, work); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wg.Wait()
		if tries != 2 {
			t.Errorf("done %d times", tries)
		}
	})
}
