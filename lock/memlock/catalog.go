package memlock

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"oncegate/lock"
)

// List implements lock.Catalog.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	start := lock.Key{Namespace: f.Namespace, Scope: after.Scope, Digest: after.Digest}
	entries, now := s.all(f.Namespace)
	var records []lock.Record
	for _, e := range entries {
		if len(records) == limit {
			break
		}
		if e.at.over(now) || after != (lock.Cursor{}) && compare(e.record.Key, start) <= 0 {
			continue
		}
		if r := e.tell(now); matches(&r, &f) {
			records = append(records, r)
		}
	}
	return records, nil
}

// matches reports whether the filter selects r, whose times are told.
func matches(r *lock.Record, f *lock.Filter) bool {
	switch {
	case f.Scope != "" && f.Scope != r.Scope,
		f.State != lock.StateNone && f.State != r.State,
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

// Count implements lock.Catalog.
func (s *Store) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return lock.Counts{}, err
	}
	defer done()
	entries, now := s.all(namespace)
	counts := lock.Counts{Claims: map[lock.ScopeState]int{}}
	for _, e := range entries {
		if e.at.over(now) {
			counts.Over++
			continue
		}
		counts.Claims[lock.ScopeState{Scope: e.record.Scope, State: e.record.State}]++
	}
	return counts, nil
}

// Purge implements lock.Catalog.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (p lock.Purged, err error) {
	done, err := s.begin(ctx)
	if err != nil {
		return p, err
	}
	defer done()
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	now := s.data.now()
	for k, e := range s.data.records {
		if p.More = p.Removed == limit; p.More {
			break
		}
		if k.Namespace == namespace && e.at.over(now) {
			delete(s.data.records, k)
			p.Removed++
		}
	}
	return p, nil
}

func compare(a, b lock.Key) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), bytes.Compare(a.Digest[:], b.Digest[:]))
}
