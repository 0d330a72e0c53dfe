package main

import (
	"maps"
	"sync"
	"time"

	"oncegate/internal/config"
	"oncegate/lock"
)

// storeFigures holds the store's figures as they were last taken; nil where another
// replica takes them.
type storeFigures struct {
	mu    sync.Mutex // guards what follows
	taken *lock.Figures
	at    time.Time
}

// last returns them with ages as of now.
func (f *storeFigures) last() *lock.Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken == nil {
		return nil
	}
	now := *f.taken
	now.Unknown = maps.Clone(now.Unknown)
	for scope, age := range now.Unknown {
		if age > 0 {
			now.Unknown[scope] = age + time.Since(f.at)
		}
	}
	return &now
}

func (f *storeFigures) set(taken *lock.Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken, f.at = taken, time.Now()
}

// figuresEvery is how often figures are taken: in a store of many millions that
// takes seconds.
const figuresEvery = time.Minute

// startBackground begins the work that nobody waits for. While the store does not
// answer the figures stay what they were; store.up says so.
func (s *service) startBackground(c *config.Config) {
	o := lock.BackgroundOptions{
		Namespace: c.Namespace, Policies: s.handler.Witnessed(), Horizons: horizons(c), FiguresEvery: figuresEvery, Figures: s.figures.set,
	}
	for _, r := range c.Routes {
		if r.Mode != config.ModeEnforce {
			continue
		}
		if o.Lease == 0 || r.Lease < o.Lease {
			o.Lease = r.Lease
		}
	}
	// A round has half the lease.
	o.Lease = max(o.Lease, leastDuty)
	s.background = lock.StartBackground(s.gate, s.store, o)
}

// horizons are those of all scopes, by their names. Where a route is taken out of
// the way its claims are there as before, and what is unknown waits for somebody.
func horizons(c *config.Config) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, r := range c.Routes {
		all[r.Scope] = max(all[r.Scope], r.Horizon())
	}
	return all
}

const leastDuty = 10 * time.Second
