package pglock

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
	"oncegate/lock/internal/columns"
)

// List implements lock.Catalog. Its records lack AnswerBody and Request. A
// listing of what is running or unknown, or of leases that are over, is quick
// however large the table; any other may go through all of it.
func (s *Store) List(ctx context.Context, f lock.Filter, after lock.Cursor, limit int) ([]lock.Record, error) {
	if f.LeaseOver || f.State == lock.StateRunning || f.State == lock.StateUnknown {
		return s.listOpen(ctx, &f, after, limit)
	}
	return s.listAll(ctx, s.listQuery(&f, after, nil, limit))
}

func (s *Store) listAll(ctx context.Context, q *query) ([]lock.Record, error) {
	var records []lock.Record
	err := s.read(ctx, "list", func(c *pgx.Conn) (err error) {
		rows, err := c.Query(ctx, q.text.String(), q.args...)
		if err != nil {
			return err
		}
		records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (lock.Record, error) {
			r, _, err := readRow(row)
			return r, err
		})
		return err
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

// add adds text, in which each ? stands for the next of args.
func (q *query) add(text string, args ...any) {
	for _, a := range args {
		q.args = append(q.args, a)
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", len(q.args)), 1)
	}
	q.text.WriteString(text)
}

// listQuery lists what f selects, of these places only where there are some.
func (s *Store) listQuery(f *lock.Filter, after lock.Cursor, of []place, limit int) *query {
	q := &query{}
	q.text.WriteString(s.sql.list)
	q.add(` WHERE namespace = ? AND (expires_at IS NULL OR expires_at > now())`, f.Namespace)
	if after != (lock.Cursor{}) {
		q.add(` AND (scope, digest) > (?, ?)`, after.Scope, after.Digest[:])
	}
	if of != nil {
		scopes, digests := columnsOf(of)
		q.add(` AND (scope, digest) IN (SELECT * FROM unnest(?::text[], ?::bytea[]))`, scopes, digests)
	}
	if f.Scope != "" {
		q.add(` AND scope = ?`, f.Scope)
	}
	if f.State != lock.StateNone {
		q.add(` AND state = ?::int8`, int64(f.State))
	}
	if f.Role != lock.RoleEvent {
		q.add(` AND role = ?::int8`, int64(f.Role))
	}
	if f.TextPart != "" {
		q.add(` AND strpos(key_text, ?) > 0`, f.TextPart)
	}
	if f.Tag != "" {
		q.add(` AND position(?::bytea IN tags) > 0`, columns.Tag(f.Tag))
	}
	if f.LeaseOver {
		q.add(` AND state = 1 AND lease_until <= now()`)
	}
	if f.RunsOver {
		q.add(` AND runs_until <= now()`)
	}
	if f.SeenWithin > 0 {
		q.add(` AND last_seen >= now() - ?::int8 * interval '1 microsecond'`, f.SeenWithin.Microseconds())
	}
	if f.NotSeenFor > 0 {
		q.add(` AND last_seen <= now() - ?::int8 * interval '1 microsecond'`, f.NotSeenFor.Microseconds())
	}
	q.add(` ORDER BY scope, digest LIMIT ?::int8`, int64(limit))
	return q
}
