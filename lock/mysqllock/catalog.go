package mysqllock

import (
	"context"
	"database/sql"
	"strings"

	"oncegate/lock"
	"oncegate/lock/internal/columns"
)

// List implements lock.Catalog. Its records lack AnswerBody and Request.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	var records []lock.Record
	q := listQuery(&f, after, limit)
	err := s.read(ctx, "list", func() error {
		records = nil
		return s.query(ctx, q, func(rows *sql.Rows) error {
			var row columns.Row
			if err := rows.Scan(row.Dest()...); err != nil {
				return err
			}
			r, err := row.Record()
			records = append(records, r)
			return err
		})
	})
	if err != nil {
		return nil, err
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

func listQuery(f *lock.Filter, after lock.Cursor, limit int) *query {
	q := &query{}
	plain := strings.Replace(columns.Plain, "answer_body, request", "NULL, NULL", 1)
	q.add(`SELECT ` + plain + `, ` + left + ` FROM oncegate_claims`)
	q.add(` WHERE namespace = ? AND (expires_at IS NULL OR expires_at > `+now+`)`, []byte(f.Namespace))
	if after != (lock.Cursor{}) {
		q.add(` AND (scope > ? OR (scope = ? AND digest > ?))`, []byte(after.Scope), []byte(after.Scope), after.Digest[:])
	}
	if f.Scope != "" {
		q.add(` AND scope = ?`, []byte(f.Scope))
	}
	if f.State != lock.StateNone {
		q.add(` AND state = ?`, int64(f.State))
	}
	if f.Role != lock.RoleEvent {
		q.add(` AND role = ?`, int64(f.Role))
	}
	if f.TextPart != "" {
		q.add(` AND locate(?, key_text) > 0`, []byte(f.TextPart))
	}
	if f.Tag != "" {
		q.add(` AND locate(?, tags) > 0`, columns.Tag(f.Tag))
	}
	if f.LeaseOver {
		q.add(` AND state = 1 AND lease_until <= ` + now)
	}
	if f.RunsOver {
		q.add(` AND runs_until <= ` + now)
	}
	if f.SeenWithin > 0 {
		q.add(` AND last_seen >= `+now+` - ?`, f.SeenWithin.Microseconds())
	}
	if f.NotSeenFor > 0 {
		q.add(` AND last_seen <= `+now+` - ?`, f.NotSeenFor.Microseconds())
	}
	q.add(` ORDER BY scope, digest LIMIT ?`, limit)
	return q
}

// Count implements lock.Catalog. It reads no record that is within its retention,
// but two indexes: one knows the scope and state of each, the other the few that
// are past it.
func (s *Store) Count(ctx context.Context, namespace string) (lock.Counts, error) {
	all, over := map[lock.ScopeState]int{}, map[lock.ScopeState]int{}
	err := s.read(ctx, "count", func() error {
		if err := s.countBy(ctx, all, `FORCE INDEX (claims_state) WHERE namespace = ?`, namespace); err != nil {
			return err
		}
		return s.countBy(ctx, over, `FORCE INDEX (claims_expiry) WHERE namespace = ? AND expires_at <= `+now, namespace)
	})
	if err != nil {
		return lock.Counts{}, err
	}
	counts := lock.Counts{Claims: map[lock.ScopeState]int{}}
	for k, n := range all {
		counts.Add(k, n-over[k], over[k])
	}
	return counts, nil
}

// countBy counts what a clause selects, by scope and state.
func (s *Store) countBy(ctx context.Context, counts map[lock.ScopeState]int, clause, namespace string) error {
	clear(counts)
	q := &query{}
	q.add(`SELECT state, scope, count(*) FROM oncegate_claims `+clause+` GROUP BY state, scope`, []byte(namespace))
	return s.query(ctx, q, func(rows *sql.Rows) error {
		var k lock.ScopeState
		var n int
		err := rows.Scan(&k.State, &k.Scope, &n)
		counts[k] = n
		return err
	})
}

// query runs a query and calls each for every row.
func (s *Store) query(ctx context.Context, q *query, each func(*sql.Rows) error) error {
	rows, err := s.db.QueryContext(ctx, q.text.String(), q.args...)
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
