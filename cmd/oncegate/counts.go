package main

import (
	"context"
	"maps"
	"sync"
	"time"

	"oncegate/lock"
)

// claimCounts holds how many claims there were when they were last counted.
type claimCounts struct {
	mu     sync.Mutex // guards counts
	counts map[lock.ScopeState]int
}

func (c *claimCounts) last() map[lock.ScopeState]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *claimCounts) set(counts map[lock.ScopeState]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = counts
}

// How often claims are counted, and how much of the time that may take: in a
// store of many millions one count takes seconds.
const (
	countPause = 15 * time.Second
	countShare = 50
	countTime  = time.Minute
)

// countClaims counts claims by scope and state until ctx is over. While the
// store does not answer, the figures stay what they were; store.up says so.
func (s *service) countClaims(ctx context.Context) {
	for {
		began := time.Now()
		counting, cancel := context.WithTimeout(ctx, countTime)
		counts, err := s.store.Count(counting, s.current.Load().Namespace)
		cancel()
		if err == nil {
			s.counts.set(counts)
		} else if ctx.Err() == nil {
			s.log.Debug("claims could not be counted", "error", err)
		}
		timer := time.NewTimer(max(countPause, countShare*time.Since(began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
