package pglock

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// stride is how many records one step of a purge looks at. That takes some
// milliseconds, and some hundred where they all must come from the disk.
const stride = 2000

// A place is where the last purge of a namespace ended.
type place struct {
	scope  string
	digest []byte
}

// Purge implements lock.Catalog. No index knows what is past retention, for it
// would cost every settle; so a purge walks the primary key in strides, each a
// short transaction, until it has removed limit records or is at the end of the
// namespace. The next one goes on from there: fewer than limit means that a
// pass over the whole namespace is over, in as many calls as it took. It waits
// for nobody's locks.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (removed int, err error) {
	s.purging.Lock()
	at := s.purged[namespace]
	s.purging.Unlock()
	for end := false; !end && removed < limit; {
		var n int
		err := s.write(ctx, "purge", func(c *pgx.Conn) (err error) {
			n, at, end, err = s.purgeStride(ctx, c, namespace, at, limit-removed)
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += n
	}
	s.purging.Lock()
	defer s.purging.Unlock()
	s.purged[namespace] = at
	return removed, nil
}

// purgeStride removes up to limit records of the next stride after a place. It
// returns how many, where it stopped, and whether that is the end of the
// namespace; the place after the end is the start.
func (s *Store) purgeStride(ctx context.Context, c *pgx.Conn, namespace string, after place, limit int) (
	removed int, at place, end bool, err error,
) {
	if after.digest == nil {
		after.digest = []byte{} // not NULL
	}
	until := place{}
	err = c.QueryRow(ctx, `SELECT scope, digest FROM `+s.sql.claims+` WHERE namespace = $1 AND (scope, digest) > ($2, $3)
		ORDER BY scope, digest OFFSET $4::int8 LIMIT 1`, namespace, after.scope, after.digest, int64(stride)).
		Scan(&until.scope, &until.digest)
	last := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !last {
		return 0, after, false, err
	}
	bound, args := "", []any{namespace, after.scope, after.digest, int64(limit)}
	if !last {
		bound, args = ` AND (scope, digest) <= ($5, $6)`, append(args, until.scope, until.digest)
	}
	// Not a subquery: that may be run again for each row, and find others.
	rows, err := c.Query(ctx, `WITH gone AS MATERIALIZED (
			SELECT scope, digest FROM `+s.sql.claims+`
			WHERE namespace = $1 AND (scope, digest) > ($2, $3)`+bound+` AND expires_at <= now()
			ORDER BY scope, digest LIMIT $4::int8 FOR UPDATE SKIP LOCKED)
		DELETE FROM `+s.sql.claims+` c USING gone
		WHERE c.namespace = $1 AND c.scope = gone.scope AND c.digest = gone.digest
		RETURNING c.scope, c.digest`, args...)
	if err != nil {
		return 0, after, false, err
	}
	var one, highest place
	_, err = pgx.ForEachRow(rows, []any{&one.scope, &one.digest}, func() error {
		removed++
		if one.compare(highest) > 0 {
			highest = place{scope: one.scope, digest: bytes.Clone(one.digest)}
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, after, false, err
	case removed == limit:
		return removed, highest, false, nil
	case last:
		return removed, place{}, true, nil
	}
	return removed, until, false, nil
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.scope, q.scope), bytes.Compare(p.digest, q.digest))
}
