package lock

import (
	"context"
	"time"
)

// Purged says what one step of a purge did.
type Purged struct {
	Removed int
	// More says that another step right away has something to do, or to look at.
	More bool
}

const (
	// stepTime is how long a step of a purge should take: those who claim beside
	// it may have to wait for it.
	stepTime = 5 * time.Millisecond
	// leastSteps is how many times a step may shrink by half: where the commit alone
	// takes longer than stepTime, fewer records would not help.
	leastSteps = 2
	// perSecond is how many records are removed in a second at the most: three times
	// as many as a busy shop makes in its busiest. What they write to the disk is in the
	// way of commits, however short the steps.
	perSecond = 1000
)

// PurgeAll removes what is past its retention in a namespace, until there is no
// more or ctx is over, and tells of each step that did something. It leaves the
// store to those who claim: it removes up to most records in a step, fewer where
// that takes long, and rests after each for twice as long as it took. So it has a
// third of a store's time at the most, and where the store is slow, so is it. Of a
// fast one it removes 1000 records a second, and no more.
func PurgeAll(ctx context.Context, c Catalog, namespace string, most int, told func(removed int, err error)) error {
	least := max(most>>leastSteps, 1)
	for limit := least; ; {
		start := time.Now()
		p, err := c.Purge(ctx, namespace, limit)
		took := time.Since(start)
		if p.Removed > 0 || err == nil && !p.More {
			told(p.Removed, err)
		}
		if err != nil || !p.More {
			return err
		}
		switch {
		case took > stepTime:
			limit = max(limit/2, least)
		case took < stepTime/2:
			limit = min(limit*2, most)
		}
		rest := time.NewTimer(max(2*took, time.Duration(p.Removed)*time.Second/perSecond-took))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return ctx.Err()
		}
	}
}
