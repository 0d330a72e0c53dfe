package pglock

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
)

// countPages is how many pages of the table one statement counts: 32 MiB.
const countPages = 4096

// Count implements lock.Catalog. It reads the table from its first page to its
// last, some pages at a time, so that it needs no long statement, holds up no
// other reader and no vacuum. A record that is moved meanwhile may be counted
// twice or not at all. What can't be read by pages is counted in one statement.
func (s *Store) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	counts := lock.Counts{Claims: map[lock.ScopeState]int{}}
	var pages int64
	err := s.read(ctx, "count", func(c *pgx.Conn) (err error) {
		pages, err = s.pages(ctx, c)
		return err
	})
	if err != nil {
		return lock.Counts{}, err
	}
	for from := int64(0); from == 0 || from < pages; from += countPages {
		where := ""
		if pages > countPages {
			where = fmt.Sprintf(` AND ctid >= '(%d,0)'`, from)
			if from+countPages < pages { // the last one takes in what was added
				where += fmt.Sprintf(` AND ctid < '(%d,0)'`, from+countPages)
			}
		}
		if err := s.countWhere(ctx, &counts, namespace, where); err != nil {
			return lock.Counts{}, err
		}
	}
	return counts, nil
}

// pages is how many pages the table has; 0 where ranges of them can't be read,
// as before PostgreSQL 14 and on servers that only speak its protocol.
func (s *Store) pages(ctx context.Context, c *pgx.Conn) (pages int64, err error) {
	err = c.QueryRow(ctx, `SELECT CASE WHEN current_setting('server_version_num')::int8 < 140000 THEN 0
			ELSE pg_relation_size($1::text::regclass) / current_setting('block_size')::int8 END
		FROM `+s.sql.claims+` WHERE ctid >= '(0,0)' LIMIT 1`, s.sql.claims).Scan(&pages)
	switch state := stateOf(err); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	case len(state) == 5 && (state[:2] == "42" || state[:2] == "0A"): // there is no such function, column or feature
		return 0, nil
	}
	return pages, err
}

// countWhere adds the records that a clause selects besides.
func (s *Store) countWhere(ctx context.Context, counts *lock.Counts, namespace, clause string) error {
	some := lock.Counts{}
	err := s.read(ctx, "count", func(c *pgx.Conn) error {
		some = lock.Counts{Claims: map[lock.ScopeState]int{}}
		// Not prepared: the next range is another text.
		rows, err := c.Query(ctx, `SELECT scope, state::int8, count(*) FILTER (WHERE expires_at IS NULL OR expires_at > now()),
				count(*) FILTER (WHERE expires_at <= now())
			FROM `+s.sql.claims+` WHERE namespace = $1`+clause+` GROUP BY scope, state`, pgx.QueryExecModeExec, namespace)
		if err != nil {
			return err
		}
		var scope string
		var state, within, over int64
		_, err = pgx.ForEachRow(rows, []any{&scope, &state, &within, &over}, func() error {
			some.Add(lock.ScopeState{Scope: scope, State: lock.State(state)}, int(within), int(over))
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for k, n := range some.Claims {
		counts.Add(k, n, 0)
	}
	counts.Over += some.Over
	return nil
}
