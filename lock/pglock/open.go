package pglock

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
)

const (
	// openChunk is how many places one statement asks about.
	openChunk = 500
	// openMargin is how long a transaction may take before what it opened
	// could be missed: its moment is when it began.
	openMargin = time.Minute
	// openAnew is how often all are looked for again, whatever was missed.
	openAnew = time.Hour
	// mostOpen bounds what is remembered. Beyond it, nothing is.
	mostOpen = 200_000
)

// opens are the places in a namespace that were running or unknown when they
// were last looked at, in order. What came to be so since a moment of the
// server's clock is found by an index, and looked at next time; all other
// records have come to rest for good, but for what is opened anew, which has
// a new moment.
type opens struct {
	places []place
	since  time.Time // zero: nothing is known
	anew   time.Time // when to forget all this, by our own clock
}

// listOpen lists what f selects among what is running or unknown.
func (s *Store) listOpen(ctx context.Context, f *lock.Filter, after lock.Cursor, limit int) (records []lock.Record, err error) {
	s.mu.Lock()
	o := s.opens[f.Namespace]
	s.mu.Unlock()
	// The later pages of a listing go by what its first page found.
	if after == (lock.Cursor{}) || o.since.IsZero() {
		if o, err = s.lookForOpen(ctx, f.Namespace, o); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.opens[f.Namespace] = o
		s.mu.Unlock()
	}
	places := o.places
	if after != (lock.Cursor{}) {
		start := placeOf(after)
		places = places[first(places, start):]
	}
	for chunk := range slices.Chunk(places, openChunk) {
		found, err := s.listAll(ctx, s.listQuery(f, after, chunk, limit-len(records)))
		if err != nil {
			return nil, err
		}
		if records = append(records, found...); len(records) == limit {
			break
		}
	}
	return records, nil
}

// first is the index of the first of the places after start.
func first(places []place, start place) int {
	i, found := slices.BinarySearchFunc(places, start, place.compare)
	if found {
		i++
	}
	return i
}

// lookForOpen returns what is open now, knowing what was.
func (s *Store) lookForOpen(ctx context.Context, namespace string, known opens) (opens, error) {
	if time.Now().After(known.anew) || len(known.places) > mostOpen {
		known = opens{anew: time.Now().Add(openAnew)}
	}
	next := opens{anew: known.anew}
	err := s.read(ctx, "list", func(c *pgx.Conn) error {
		next.places = nil
		var now time.Time
		if err := c.QueryRow(ctx, "SELECT now()").Scan(&now); err != nil {
			return err
		}
		next.since = now.Add(-openMargin)
		text, args := s.sql.opened, []any{namespace}
		if !known.since.IsZero() {
			text, args = text+` AND opened_at >= $2`, append(args, known.since)
		}
		if err := addPlaces(ctx, c, &next.places, text, args...); err != nil {
			return err
		}
		for chunk := range slices.Chunk(known.places, openChunk) {
			scopes, digests := columnsOf(chunk)
			if err := addPlaces(ctx, c, &next.places, s.sql.stillOpen, namespace, scopes, digests); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return opens{}, err
	}
	slices.SortFunc(next.places, place.compare)
	next.places = slices.CompactFunc(next.places, func(a, b place) bool { return a.compare(b) == 0 })
	return next, nil
}

// addPlaces adds the places that a query returns.
func addPlaces(ctx context.Context, c *pgx.Conn, to *[]place, text string, args ...any) error {
	rows, err := c.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		err = row.Scan(&p.scope, &p.digest)
		return p, err
	})
	*to = append(*to, found...)
	return err
}
