package sqlevidence

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

const (
	columns = "id, namespace, scope, digest, first_at, last_at, number, kind, route, provider, result, status, again, late, facts"
	// Rows of one INSERT: 15 values each, and SQLite and PostgreSQL take tens of
	// thousands in one statement.
	rowsAtOnce = 256
	// Bytes of facts in one INSERT: MySQL takes no more than max_allowed_packet,
	// which may be 1 MiB.
	bytesAtOnce = 512 << 10
)

// Write implements evidence.Store.
func (s *Store) Write(ctx context.Context, entries []evidence.Entry) error {
	if err := s.makeReady(ctx); err != nil {
		return err
	}
	var args []any
	size := 0
	for i := range entries {
		e := &entries[i]
		facts, err := s.seal(e)
		if err != nil {
			return err
		}
		if len(args) == 15*rowsAtOnce || size > 0 && size+len(facts) > bytesAtOnce {
			if err := s.insert(ctx, args); err != nil {
				return err
			}
			args, size = args[:0], 0
		}
		size += len(facts)
		args = append(args, e.ID[:], e.Key.Namespace, e.Key.Scope, e.Key.Digest[:], e.First.UnixMicro(), e.Last.UnixMicro(),
			int64(e.Count), int64(e.Kind), e.Route, e.Provider, e.Result, int64(e.Status), number(e.Duplicate), number(e.Late), facts)
	}
	return s.insert(ctx, args)
}

// insert writes rows, given as their values.
func (s *Store) insert(ctx context.Context, args []any) error {
	if len(args) == 0 {
		return nil
	}
	row := ", (" + strings.Repeat("?, ", 14) + "?)"
	statement := "INSERT INTO @ (" + columns + ") VALUES " + strings.Repeat(row, len(args)/15)[2:] + " " + s.dialect.replace
	err := s.insertOverOldest(ctx, args[1], func() error {
		_, err := s.db.ExecContext(ctx, s.dialect.text(statement), args...)
		return err
	})
	if err != nil {
		return failed("write", err)
	}
	return nil
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Find implements evidence.Store.
func (s *Store) Find(ctx context.Context, q evidence.Query) (entries []evidence.Entry, err error) {
	if err := s.makeReady(ctx); err != nil {
		return nil, err
	}
	where, args := []string{"namespace = ?"}, []any{q.Namespace}
	also := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	if q.Scope != "" {
		also("scope = ?", q.Scope)
	}
	if q.Digest != (lock.Digest{}) {
		also("digest = ?", q.Digest[:])
	}
	if q.Result != "" {
		also("result = ?", q.Result)
	}
	if !q.Since.IsZero() {
		also("last_at >= ?", q.Since.UnixMicro())
	}
	args = append(args, int64(q.Limit))
	rows, err := s.db.QueryContext(ctx, s.dialect.text("SELECT "+columns+" FROM @ WHERE "+strings.Join(where, " AND ")+
		" ORDER BY last_at DESC, first_at DESC, id LIMIT ?"), args...)
	if err != nil {
		return nil, failed("find", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, err := s.scan(rows)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, failed("find", err)
	}
	slices.SortStableFunc(entries, func(a, b evidence.Entry) int { return a.First.Compare(b.First) })
	return entries, nil
}

func (s *Store) scan(rows *sql.Rows) (e evidence.Entry, err error) {
	var id, digest, facts []byte
	var first, last, count int64
	var again, late, kind int
	err = rows.Scan(&id, &e.Key.Namespace, &e.Key.Scope, &digest, &first, &last, &count, &kind,
		&e.Route, &e.Provider, &e.Result, &e.Status, &again, &late, &facts)
	if err != nil {
		return e, failed("find", err)
	}
	copy(e.ID[:], id)
	copy(e.Key.Digest[:], digest)
	e.First, e.Last = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
	e.Count, e.Kind, e.Duplicate, e.Late = int(count), evidence.Kind(kind), again != 0, late != 0
	s.unseal(&e, facts)
	return e, nil
}

// Figures implements evidence.Store.
func (s *Store) Figures(ctx context.Context, namespace string, since time.Time) (figures []evidence.Figure, err error) {
	if err := s.makeReady(ctx); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, s.dialect.text(`SELECT route, provider, result, sum(number), sum(number * again), sum(number * late)
		FROM @ WHERE namespace = ? AND kind = 0 AND last_at >= ? GROUP BY route, provider, result ORDER BY route, provider, result`),
		namespace, since.UnixMicro())
	if err != nil {
		return nil, failed("sum up", err)
	}
	defer rows.Close()
	for rows.Next() {
		var f evidence.Figure
		if err := rows.Scan(&f.Route, &f.Provider, &f.Result, &f.Deliveries, &f.Duplicates, &f.Late); err != nil {
			return nil, failed("sum up", err)
		}
		figures = append(figures, f)
	}
	if err := rows.Err(); err != nil {
		return nil, failed("sum up", err)
	}
	return figures, nil
}

// Forget implements evidence.Store.
func (s *Store) Forget(ctx context.Context, key lock.Key) error {
	if err := s.makeReady(ctx); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, s.dialect.text("DELETE FROM @ WHERE namespace = ? AND scope = ? AND digest = ?"),
		key.Namespace, key.Scope, key.Digest[:])
	if err == nil && s.file != "" {
		// What was written before lies in the write-ahead log until that is emptied.
		// Where somebody reads it now, the next time will do.
		var busy, pages, moved int
		err = s.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	}
	if err != nil {
		return failed("forget", err)
	}
	return nil
}

// Purge implements evidence.Store. It looks without locking anything, and then
// removes what it found by its IDs: a DELETE that looks for itself locks what it
// passes, and writes would wait for it.
func (s *Store) Purge(ctx context.Context, namespace string, before time.Time, limit int) (int, error) {
	if err := s.makeReady(ctx); err != nil {
		return 0, err
	}
	ids, err := s.over(ctx, namespace, before, limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	done, err := s.db.ExecContext(ctx, s.dialect.text("DELETE FROM @ WHERE id IN ("+strings.Repeat("?, ", len(ids)-1)+"?) AND last_at < ?"),
		append(ids, before.UnixMicro())...)
	if err != nil {
		return 0, failed("purge", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, failed("purge", err)
	}
	return int(n), nil
}

// over returns the IDs of up to limit entries whose last delivery came before.
func (s *Store) over(ctx context.Context, namespace string, before time.Time, limit int) (ids []any, err error) {
	rows, err := s.db.QueryContext(ctx, s.dialect.text("SELECT id FROM @ WHERE namespace = ? AND last_at < ? ORDER BY last_at LIMIT ?"),
		namespace, before.UnixMicro(), int64(limit))
	if err != nil {
		return nil, failed("purge", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return nil, failed("purge", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, failed("purge", err)
	}
	return ids, nil
}
