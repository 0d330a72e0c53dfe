package sqlitelock

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"oncegate/lock"
	"oncegate/lock/internal/columns"
)

// List implements lock.Catalog. Its records lack AnswerBody and Request.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	var records []lock.Record
	err := s.query(ctx, listQuery(&f, after, limit, time.Now().UnixMicro()), func(rows *sql.Rows) error {
		var row columns.Row
		if err := rows.Scan(row.Dest()...); err != nil {
			return err
		}
		r, err := row.Record()
		records = append(records, r)
		return err
	})
	if err != nil {
		return nil, failed("list", err)
	}
	return records, nil
}

// A query is text and the values of its parameters.
type query struct {
	text strings.Builder
	args []any
}

func (q *query) add(text string, args ...any) {
	q.text.WriteString(text)
	q.args = append(q.args, args...)
}

func listQuery(f *lock.Filter, after lock.Cursor, limit int, now int64) *query {
	q := &query{}
	plain := strings.Replace(columns.Plain, "answer_body, request", "NULL, NULL", 1)
	q.add(`SELECT `+plain+`, `+selectTimes+` FROM claims`, now, now, now, now, now, now, now)
	q.add(` WHERE namespace = ? AND (expires_at IS NULL OR expires_at > ?)`, f.Namespace, now)
	if after != (lock.Cursor{}) {
		q.add(` AND (scope, digest) > (?, ?)`, after.Scope, after.Digest[:])
	}
	if f.Scope != "" {
		q.add(` AND scope = ?`, f.Scope)
	}
	// These first words name the index on what is open.
	if f.LeaseOver || f.State == lock.StateRunning || f.State == lock.StateUnknown {
		q.add(` AND state IN (1, 4)`)
	}
	if f.LeaseOver {
		q.add(` AND state = 1 AND lease_until <= ?`, now)
	}
	if f.RunsOver {
		q.add(` AND runs_until <= ?`, now)
	}
	if f.State != lock.StateNone {
		q.add(` AND state = ?`, int64(f.State))
	}
	if f.Role != lock.RoleEvent {
		q.add(` AND role = ?`, int64(f.Role))
	}
	if f.TextPart != "" {
		q.add(` AND instr(key_text, ?) > 0`, f.TextPart)
	}
	if f.Tag != "" {
		q.add(` AND instr(tags, ?) > 0`, columns.Tag(f.Tag))
	}
	if f.SeenWithin > 0 {
		q.add(` AND last_seen >= ?`, now-f.SeenWithin.Microseconds())
	}
	if f.NotSeenFor > 0 {
		q.add(` AND last_seen <= ?`, now-f.NotSeenFor.Microseconds())
	}
	q.add(` ORDER BY scope, digest LIMIT ?`, limit)
	return q
}

// Count implements lock.Catalog.
func (s *Store) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	counts := lock.Counts{Claims: map[lock.ScopeState]int{}}
	q := &query{}
	q.add(`SELECT scope, state, count(*), coalesce(sum(expires_at <= ?), 0) FROM claims WHERE namespace = ? GROUP BY scope, state`,
		time.Now().UnixMicro(), namespace)
	err := s.query(ctx, q, func(rows *sql.Rows) error {
		var k lock.ScopeState
		var n, over int
		err := rows.Scan(&k.Scope, &k.State, &n, &over)
		counts.Add(k, n-over, over)
		return err
	})
	if err != nil {
		return lock.Counts{}, failed("count", err)
	}
	return counts, nil
}

// purgeStep is how many records are removed in a transaction at the most: claims
// wait for it.
const purgeStep = 32

// Purge implements lock.Catalog.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (lock.Purged, error) {
	limit = min(limit, purgeStep)
	var n int64
	err := s.transact(ctx, func(w *writer) error {
		result, err := w.conn.ExecContext(w.ctx, `DELETE FROM claims WHERE rowid IN (
			SELECT rowid FROM claims WHERE namespace = ? AND expires_at <= ? ORDER BY expires_at LIMIT ?)`,
			namespace, time.Now().UnixMicro(), limit)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return lock.Purged{}, failed("purge", err)
	}
	return lock.Purged{Removed: int(n), More: int(n) == limit}, nil
}

// query runs a query of the catalog and calls each for every row.
func (s *Store) query(ctx context.Context, q *query, each func(*sql.Rows) error) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	from, err := s.reading(ctx)
	if err != nil {
		return err
	}
	rows, err := from.db.QueryContext(ctx, q.text.String(), q.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
