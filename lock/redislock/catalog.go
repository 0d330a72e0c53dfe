package redislock

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

const (
	// perLook is how many records are read at a time.
	perLook = 64
	// perScan is how many keys a server is asked to go through at a time.
	perScan = 1000
	// mostKeys bounds the keys that are held while others are gone through.
	mostKeys = 20000
)

// List implements lock.Catalog. A listing of what is running or unknown, or of
// leases that are over, looks at just those. Any other goes through all keys of
// the database, for Redis has no order of its own: that is for people, not for
// a loop. One of another state reads whole records of that state alone.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	var records []lock.Record
	for len(records) < limit {
		keys, all, err := s.keys(ctx, &f, after)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(keys, perLook) {
			found, err := s.Read(ctx, chunk)
			if err != nil {
				return nil, err
			}
			for i := range found {
				if found[i].Exists() && matches(&found[i], &f) && len(records) < limit {
					records = append(records, found[i])
				}
			}
			if len(records) == limit {
				return records, nil
			}
		}
		if all {
			break
		}
		last := keys[len(keys)-1]
		after = lock.Cursor{Scope: last.Scope, Digest: last.Digest}
	}
	return records, nil
}

// keys returns the first of the keys after the cursor, in order, that f may
// select by what a key tells, and whether these are all.
func (s *Store) keys(ctx context.Context, f *lock.Filter, after lock.Cursor) (keys []lock.Key, all bool, err error) {
	start := lock.Key{Namespace: f.Namespace, Scope: after.Scope, Digest: after.Digest}
	all = true
	take := func(text string) {
		k, ok := s.parseKey(text)
		if !ok || k.Namespace != f.Namespace || f.Scope != "" && k.Scope != f.Scope ||
			after != (lock.Cursor{}) && compare(k, start) <= 0 {
			return
		}
		if keys = append(keys, k); len(keys) >= 2*mostKeys {
			keys, all = first(keys), false
		}
	}
	if f.LeaseOver || f.State == lock.StateRunning || f.State == lock.StateUnknown {
		err = s.open(ctx, f.Namespace, take)
	} else {
		err = s.scan(ctx, f.Namespace, f.State, take)
	}
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(keys, compare)
	keys = slices.Compact(keys)
	if len(keys) > mostKeys {
		keys, all = keys[:mostKeys], false
	}
	return keys, all, nil
}

// first returns the first mostKeys of the keys, in order.
func first(keys []lock.Key) []lock.Key {
	slices.SortFunc(keys, compare)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), mostKeys)]
}

func compare(a, b lock.Key) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), bytes.Compare(a.Digest[:], b.Digest[:]))
}

// open calls each with the key of every record of the namespace that is
// running or unknown.
func (s *Store) open(ctx context.Context, namespace string, each func(string)) error {
	return s.reading(ctx, "list", func() error {
		p := s.client.Pipeline()
		sets := make([]*redis.StringSliceCmd, tags)
		for i := range sets {
			sets[i] = p.SMembers(ctx, s.openKey(namespace, byte(i)))
		}
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
		for _, set := range sets {
			for _, k := range set.Val() {
				each(k)
			}
		}
		return nil
	})
}

// scan calls each with every key of the namespace's records in a state, or in
// any, some more than once.
func (s *Store) scan(ctx context.Context, namespace string, state lock.State, each func(string)) error {
	return s.reading(ctx, "list", func() error {
		var mu sync.Mutex // guards each, which a cluster's nodes call
		node := func(ctx context.Context, c *redis.Client) error {
			for cursor := uint64(0); ; {
				keys, next, err := c.Scan(ctx, cursor, s.pattern(namespace), perScan).Result()
				if err == nil && state != lock.StateNone {
					keys, err = s.inState(ctx, keys, state)
				}
				if err != nil {
					return err
				}
				mu.Lock()
				for _, k := range keys {
					each(k)
				}
				mu.Unlock()
				if cursor = next; cursor == 0 {
					return nil
				}
			}
		}
		switch c := s.client.(type) {
		case *redis.ClusterClient:
			return c.ForEachMaster(ctx, node)
		case *redis.Client:
			return node(ctx, c)
		default:
			return errAnswer
		}
	})
}

// inState returns those of the keys whose records are in a state.
func (s *Store) inState(ctx context.Context, keys []string, state lock.State) (those []string, err error) {
	states, err := s.states(ctx, keys)
	for i := range states {
		if states[i] == state {
			those = append(those, keys[i])
		}
	}
	return those, err
}

// matches reports whether the filter selects r.
func matches(r *lock.Record, f *lock.Filter) bool {
	switch {
	case f.State != lock.StateNone && f.State != r.State,
		f.Role != lock.RoleEvent && f.Role != r.Role,
		!strings.Contains(r.Text, f.TextPart),
		f.Tag != "" && !slices.Contains(r.Tags, f.Tag),
		f.LeaseOver && (r.State != lock.StateRunning || r.Lease > 0),
		f.RunsOver && r.RunsUntil > 0,
		f.SeenWithin > 0 && r.LastSeen > f.SeenWithin,
		f.NotSeenFor > 0 && r.LastSeen < f.NotSeenFor:
		return false
	}
	return true
}

// Purge implements lock.Catalog: there is never anything to do. The server
// removes what is past retention by itself.
func (s *Store) Purge(ctx context.Context, _ string, _ int) (lock.Purged, error) {
	return lock.Purged{}, s.call(ctx, "purge", func() error { return nil })
}
