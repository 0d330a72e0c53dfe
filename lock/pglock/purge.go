package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
)

// A purge is how far the purge of a namespace has come.
type purge struct {
	// at is the moment at which the records were opened that the last step looked
	// at last; some that were opened just then may be left, unless past is set.
	at     time.Time
	past   bool
	took   time.Duration // what this pass has taken up to now
	rested time.Time     // when the next pass may begin, by our own clock
}

// rest is how much longer a pass over a namespace is waited for than one takes.
const rest = 20

// Purge implements lock.Catalog. No index knows what is past retention, for it
// would cost every settle; so a purge walks the records in the order in which they
// were opened, which is about the order in which they lie there. A step is a short
// transaction that waits for nobody's locks. After a pass over the whole table the
// next one waits for twenty times as long as this one took, so that a large table is
// not read all the time.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (lock.Purged, error) {
	start := time.Now()
	s.mu.Lock()
	p := s.purges[namespace]
	s.mu.Unlock()
	if start.Before(p.rested) {
		return lock.Purged{}, nil
	}
	next := p
	var removed int
	var end bool
	err := s.write(ctx, "purge", func(c *pgx.Conn) (err error) {
		next = p
		removed, end, err = s.purgeStep(ctx, c, namespace, &next, limit)
		return err
	})
	if err != nil {
		return lock.Purged{}, err
	}
	next.took += time.Since(start)
	if end {
		next = purge{rested: time.Now().Add(rest * next.took)}
	}
	s.mu.Lock()
	s.purges[namespace] = next
	s.mu.Unlock()
	return lock.Purged{Removed: removed, More: !end}, nil
}

// purgeStep looks at the next records, up to limit and those that were opened at the
// same moment as the last, removes up to limit of them, moves p on, and reports
// whether that is the end of the table.
func (s *Store) purgeStep(ctx context.Context, c *pgx.Conn, namespace string, p *purge, limit int) (removed int, end bool, err error) {
	from := "opened_at >= $1"
	if p.past {
		from = "opened_at > $1"
	}
	var until time.Time
	err = c.QueryRow(ctx, `SELECT opened_at FROM `+s.sql.claims+` WHERE `+from+` ORDER BY opened_at OFFSET $2::int8 LIMIT 1`,
		p.at, int64(limit-1)).Scan(&until)
	end = errors.Is(err, pgx.ErrNoRows)
	if err != nil && !end {
		return 0, false, err
	}
	args := []any{p.at, namespace, int64(limit)}
	if !end {
		from, args = from+" AND opened_at <= $4", append(args, until)
	}
	// Not a subquery: that may be run again for each row, and find others.
	rows, err := c.Query(ctx, `WITH gone AS MATERIALIZED (
			SELECT scope, digest FROM `+s.sql.claims+`
			WHERE `+from+` AND namespace = $2 AND expires_at <= now()
			ORDER BY opened_at LIMIT $3::int8 FOR UPDATE SKIP LOCKED)
		DELETE FROM `+s.sql.claims+` c USING gone
		WHERE c.namespace = $2 AND c.scope = gone.scope AND c.digest = gone.digest
		RETURNING c.opened_at`, args...)
	if err != nil {
		return 0, false, err
	}
	var opened, last time.Time
	if _, err := pgx.ForEachRow(rows, []any{&opened}, func() error {
		if removed++; opened.After(last) {
			last = opened
		}
		return nil
	}); err != nil {
		return 0, false, err
	}
	if removed == limit {
		p.at, p.past = last, false
		return removed, false, nil
	}
	p.at, p.past = until, true
	return removed, end, nil
}
