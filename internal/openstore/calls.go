package openstore

import (
	"context"
	"fmt"

	"oncegate/lock"
)

// through makes one call of the backend, if that was found fit, and notes how
// it went.
func through[T any](s *Store, doing string, call func() (T, error)) (T, error) {
	if !s.ready() {
		var none T
		return none, unready(doing)
	}
	result, err := call()
	s.note(err)
	return result, err
}

// Apply implements lock.Store. What a delivery asks for is refused while the
// backend is unfit; what was begun may go on.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if why := s.refusing.Load(); why != nil {
		return s.applyOld(ctx, batch, *why)
	}
	return through(s, "apply", func() ([]lock.Result, error) { return s.backend.Apply(ctx, batch) })
}

// applyOld makes the changes that no delivery asks for, and refuses the others.
func (s *Store) applyOld(ctx context.Context, batch []lock.Change, why error) ([]lock.Result, error) {
	results := make([]lock.Result, len(batch))
	var old []lock.Change
	var at []int
	for i := range batch {
		if batch[i].Seen {
			results[i].Err = fmt.Errorf("begin: %w", why)
			continue
		}
		old, at = append(old, batch[i]), append(at, i)
	}
	if len(old) == 0 {
		return results, nil
	}
	made, err := through(s, "apply", func() ([]lock.Result, error) { return s.backend.Apply(ctx, old) })
	if err != nil {
		return nil, err
	}
	for i, r := range made {
		results[at[i]] = r
	}
	return results, nil
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	return through(s, "read", func() ([]lock.Record, error) { return s.backend.Read(ctx, keys) })
}

// List implements lock.Catalog.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	return through(s, "list", func() ([]lock.Record, error) { return s.backend.List(ctx, f, after, limit) })
}

// Count implements lock.Catalog.
func (s *Store) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	return through(s, "count", func() (lock.Counts, error) { return s.backend.Count(ctx, namespace) })
}

// Purge implements lock.Catalog.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (lock.Purged, error) {
	return through(s, "purge", func() (lock.Purged, error) { return s.backend.Purge(ctx, namespace, limit) })
}

// Watch implements lock.Watcher: from when the backend was found fit, if it is
// a Watcher. Otherwise there is nothing to tell until ctx is over.
func (s *Store) Watch(ctx context.Context, rested func(lock.Digest)) error {
	select {
	case <-s.fit:
	case <-ctx.Done():
		return ctx.Err()
	}
	if w, ok := s.backend.(lock.Watcher); ok {
		return w.Watch(ctx, rested)
	}
	<-ctx.Done()
	return ctx.Err()
}

// Close implements lock.Store. It ends the background work first.
func (s *Store) Close() error {
	s.stop()
	s.wg.Wait()
	return s.backend.Close()
}

var _ interface {
	lock.Store
	lock.Catalog
	lock.Watcher
} = (*Store)(nil)
