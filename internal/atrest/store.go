package atrest

import (
	"context"
	"slices"

	"oncegate/lock"
)

// A Backend is a store with all its sides.
type Backend interface {
	lock.Store
	lock.Catalog
	lock.Checker
	Migrate(ctx context.Context) error
}

// A Store encrypts what goes into a Backend, and decrypts what comes out.
type Store struct {
	Backend
	ring *Keyring
}

// Wrap returns a Store on b, which stays the caller's to close by closing the
// Store.
func Wrap(b Backend, ring *Keyring) *Store { return &Store{b, ring} }

// Apply implements lock.Store.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	sealed := slices.Clone(batch)
	for i := range sealed {
		if err := s.ring.SealRecord(&sealed[i].Next); err != nil {
			return nil, err
		}
	}
	results, err := s.Backend.Apply(ctx, sealed)
	for i := range results {
		s.open(&results[i].Standing)
	}
	return results, err
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	records, err := s.Backend.Read(ctx, keys)
	for i := range records {
		s.open(&records[i])
	}
	return records, err
}

// List implements lock.Catalog.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	records, err := s.Backend.List(ctx, f, after, limit)
	for i := range records {
		s.open(&records[i])
	}
	return records, err
}

// Watch implements lock.Watcher, if the Backend does. Else there is nothing to
// tell until ctx is over.
func (s *Store) Watch(ctx context.Context, rested func(lock.Digest)) error {
	if w, ok := s.Backend.(lock.Watcher); ok {
		return w.Watch(ctx, rested)
	}
	<-ctx.Done()
	return ctx.Err()
}

// SealRecord encrypts the blobs of a record, but for those that are encrypted.
func (r *Keyring) SealRecord(record *lock.Record) (err error) {
	for c, blob := range blobs(record) {
		if *blob, err = r.seal(*blob, about(&record.Key, c)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) open(r *lock.Record) {
	for c, blob := range blobs(r) {
		*blob = s.ring.open(*blob, about(&r.Key, c))
	}
}

// blobs yields the columns of a record that are encrypted.
func blobs(r *lock.Record) func(yield func(column, *[]byte) bool) {
	return func(yield func(column, *[]byte) bool) {
		_ = yield(answerHeader, &r.AnswerHeader) && yield(answerBody, &r.AnswerBody) && yield(request, &r.Request)
	}
}

var _ interface {
	Backend
	lock.Watcher
} = (*Store)(nil)
