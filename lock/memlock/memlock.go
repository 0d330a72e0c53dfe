// Package memlock is a store in the memory of this process.
//
// It keeps every promise of lock.Store but durability, so it serves tests and
// demonstrations. Time can be made to pass:
//
//	s := memlock.New()
//	... // begin something with a lease of 30 s
//	s.Advance(time.Minute)
//	... // now the lease is over
//
// Several stores can share what they keep, as processes share a database:
//
//	other := s.Sibling()
package memlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"oncegate/lock"
	"oncegate/lock/internal/calls"
)

// A Store keeps records in memory.
type Store struct {
	data  *data
	calls calls.Calls
}

// data is what siblings share.
type data struct {
	mu      sync.Mutex // guards all below
	records map[lock.Key]entry
	ahead   time.Duration // of the host's clock
}

// An entry is one record. The durations in its record mean nothing.
type entry struct {
	record lock.Record
	at     moments
}

// New returns an empty store.
func New() *Store {
	return &Store{data: &data{records: map[lock.Key]entry{}}}
}

// Sibling returns another store with the same records, which outlive either.
func (s *Store) Sibling() *Store { return &Store{data: s.data} }

// Advance lets d pass by the clock of the store and its siblings.
func (s *Store) Advance(d time.Duration) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.data.ahead += d
}

// Len returns how many records are kept, past retention or not.
func (s *Store) Len() int {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	return len(s.data.records)
}

// now returns the store's time. The caller holds mu.
func (d *data) now() int64 { return time.Now().Add(d.ahead).UnixMicro() }

// Apply implements lock.Store.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	now := s.data.now()
	results := make([]lock.Result, len(batch))
	for i := range batch {
		results[i].Standing = s.data.apply(&batch[i], now)
	}
	return results, nil
}

// apply makes one change and returns what stands then.
func (d *data) apply(c *lock.Change, now int64) lock.Record {
	old := d.records[c.Next.Key]
	if old.record.Version == c.Next.Version {
		return old.tell(now)
	}
	if old.at.over(now) {
		old = entry{}
	}
	if old.record.Version != c.Expect {
		return old.tell(now)
	}
	e := entry{record: own(c.Next), at: momentsOf(c, old.at, now)}
	d.records[c.Next.Key] = e
	return e.tell(now)
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	now := s.data.now()
	records := make([]lock.Record, len(keys))
	for i, k := range keys {
		if e := s.data.records[k]; !e.at.over(now) {
			records[i] = e.tell(now)
		}
	}
	return records, nil
}

// Close implements lock.Store. The records stay with the siblings.
func (s *Store) Close() error {
	s.calls.Close()
	return nil
}

func (s *Store) begin(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory store: %w: %w", lock.ErrUnavailable, err)
	}
	return s.calls.Begin()
}

// tell returns the record as a caller may have it.
func (e entry) tell(now int64) lock.Record {
	if !e.record.Exists() {
		return lock.Record{}
	}
	r := own(e.record)
	e.at.tell(&r, now)
	return r
}

// own returns a copy of r that shares no slice with it.
func own(r lock.Record) lock.Record {
	r.AnswerHeader = slices.Clone(r.AnswerHeader)
	r.AnswerBody = slices.Clone(r.AnswerBody)
	r.Request = slices.Clone(r.Request)
	r.Tags = slices.Clone(r.Tags)
	return r
}

// all returns the entries of a namespace in the order of List, and the time.
func (s *Store) all(namespace string) ([]entry, int64) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	entries := slices.Collect(maps.Values(s.data.records))
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.record.Namespace != namespace })
	slices.SortFunc(entries, func(a, b entry) int { return compare(a.record.Key, b.record.Key) })
	return entries, s.data.now()
}
