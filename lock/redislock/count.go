package redislock

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

// mostSeen bounds the keys that a count remembers, to count none twice.
const mostSeen = 1 << 16

// Count implements lock.Catalog. It goes through all keys of the database, once,
// a thousand at a time. A server that is making more or less room for its keys
// may name one twice; beyond the first 65 536 that is counted twice. What is past
// its retention is gone by itself.
func (s *Store) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	counts := lock.Counts{Claims: map[lock.ScopeState]int{}}
	seen := map[lock.Key]bool{}
	err := s.pages(ctx, namespace, func(page []string) error {
		var keys []lock.Key
		for _, text := range page {
			k, ok := s.parseKey(text)
			if !ok || k.Namespace != namespace || seen[k] {
				continue
			}
			if len(seen) < mostSeen {
				seen[k] = true
			}
			keys = append(keys, k)
		}
		return s.countStates(ctx, keys, &counts)
	})
	if err != nil {
		return lock.Counts{}, err
	}
	return counts, nil
}

// pages calls each with the keys of the namespace's records, page by page. Unlike
// scan it lets other readers go on in between.
func (s *Store) pages(ctx context.Context, namespace string, each func([]string) error) error {
	var mu sync.Mutex // guards each, which a cluster's nodes call
	node := func(ctx context.Context, c *redis.Client) error {
		for cursor := uint64(0); ; {
			var page []string
			err := s.reading(ctx, "count", func() (err error) {
				page, cursor, err = c.Scan(ctx, cursor, s.pattern(namespace), perScan).Result()
				return err
			})
			if err != nil {
				return err
			}
			mu.Lock()
			err = each(page)
			mu.Unlock()
			if err != nil || cursor == 0 {
				return err
			}
		}
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		if err := c.ForEachMaster(ctx, node); err != nil {
			return failed("count", err)
		}
		return nil
	case *redis.Client:
		return node(ctx, c)
	}
	return failed("count", errAnswer)
}

// countStates adds the states of the records under these keys.
func (s *Store) countStates(ctx context.Context, keys []lock.Key, counts *lock.Counts) error {
	texts := make([]string, len(keys))
	for i := range keys {
		texts[i] = s.key(&keys[i])
	}
	var states []lock.State
	err := s.reading(ctx, "count", func() (err error) {
		states, err = s.states(ctx, texts)
		return err
	})
	if err != nil {
		return err
	}
	for i, state := range states {
		if state != gone {
			counts.Add(lock.ScopeState{Scope: keys[i].Scope, State: state}, 1, 0)
		}
	}
	return nil
}

// gone is no state: the record is not there any more.
const gone = lock.State(0xff)

// states are the states of the records under these keys, as the server names
// them.
func (s *Store) states(ctx context.Context, keys []string) ([]lock.State, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	p := s.client.Pipeline()
	asked := make([]*redis.StringCmd, len(keys))
	for i, k := range keys {
		asked[i] = p.GetRange(ctx, k, int64(atState), int64(atState))
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	states := make([]lock.State, len(keys))
	for i, one := range asked {
		states[i] = gone
		if b := one.Val(); b != "" {
			states[i] = lock.State(b[0])
		}
	}
	return states, nil
}
