package pglock

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// stride is how many records one step of a purge looks at. That takes some
// milliseconds, and some hundred where they all must come from the disk.
const stride = 2000

// A purge is how far the purge of a namespace has come.
type purge struct {
	at     place         // where the last call ended
	took   time.Duration // what this pass has taken up to now
	rested time.Time     // when the next pass may begin, by our own clock
}

// rest is how much longer a pass over a namespace is waited for than one takes.
const rest = 20

// Purge implements lock.Catalog. No index knows what is past retention, for it
// would cost every settle; so a purge walks the primary key in strides, each a
// short transaction that waits for nobody's locks, until it has removed limit
// records, or is at the end of the namespace, or has used half of the time that
// ctx leaves. The next call goes on from there. After a pass over the whole
// namespace the next one waits for twenty times as long as this one took, so
// that a large table is not read all the time.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (removed int, err error) {
	start := time.Now()
	s.mu.Lock()
	p := s.purges[namespace]
	s.mu.Unlock()
	if start.Before(p.rested) {
		return 0, nil
	}
	began := p.took
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.purges[namespace] = p
	}()
	for end := false; !end && removed < limit && !halfGone(ctx, start); {
		var n int
		err := s.write(ctx, "purge", func(c *pgx.Conn) (err error) {
			n, p.at, end, err = s.purgeStride(ctx, c, namespace, p.at, limit-removed)
			return err
		})
		p.took = began + time.Since(start)
		if err != nil {
			return removed, err
		}
		removed += n
		if end {
			p.rested, p.took = time.Now().Add(rest*p.took), 0
		}
	}
	return removed, nil
}

// halfGone reports whether half of the time is gone that ctx left at start.
func halfGone(ctx context.Context, start time.Time) bool {
	deadline, set := ctx.Deadline()
	return set && time.Since(start) > deadline.Sub(start)/2
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
