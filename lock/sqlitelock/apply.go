package sqlitelock

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"oncegate/lock"
	"oncegate/lock/internal/columns"
)

const (
	times = `lease_until, runs_until, due_at, expires_at, first_seen, last_seen, written_at`

	// insertRecord begins a record where there is none, or over one that is
	// past its retention. Parameters: Plain, then all times.
	insertRecord = `INSERT INTO claims (` + columns.Plain + `, ` + times + `)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (` + columns.Key + `) DO UPDATE SET (` + columns.Other + `, ` + times + `) =
		(excluded.key_text, excluded.role, excluded.names, excluded.state, excluded.mark, excluded.reason,
		excluded.attempt, excluded.unanswered, excluded.token, excluded.version, excluded.group_key,
		excluded.deliveries, excluded.answer_status, excluded.answer_header, excluded.answer_body, excluded.request,
		excluded.payload, excluded.tags, excluded.lease_until, excluded.runs_until, excluded.due_at,
		excluded.expires_at, excluded.first_seen, excluded.last_seen, excluded.written_at)
	WHERE claims.expires_at <= excluded.written_at AND claims.version <> excluded.version`

	// updateRecord changes a record that stands at a version. Parameters:
	// Other, then lease, runs until, due, expiry, whether seen, now twice, the
	// key, the version, now.
	updateRecord = `UPDATE claims SET (` + columns.Other + `, lease_until, runs_until, due_at, expires_at) =
		(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
		last_seen = iif(?, ?, last_seen), written_at = ?
	WHERE namespace = ? AND scope = ? AND digest = ? AND version = ? AND (expires_at IS NULL OR expires_at > ?)
	RETURNING first_seen, last_seen`

	// selectTimes ends a list of columns; its seven parameters all are now.
	selectTimes = `lease_until - ?, runs_until - ?, due_at - ?, expires_at - ?, ? - first_seen, ? - last_seen, ? - written_at`

	selectRecord = `SELECT ` + columns.Plain + `, ` + selectTimes + ` FROM claims
	WHERE namespace = ? AND scope = ? AND digest = ?`
)

// Apply implements lock.Store.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	owned := own(batch)
	var results []lock.Result
	err := s.transact(ctx, func(w *writer) error {
		results = make([]lock.Result, len(owned))
		now := time.Now().UnixMicro()
		for i := range owned {
			var err error
			if results[i].Standing, err = w.apply(&owned[i], now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, failed("apply", err)
	}
	return results, nil
}

// own copies the blobs of a batch: a caller whose time is over leaves while
// the writer may still be reading them. Tags are encoded by the writer, so
// their list is copied as well.
func own(batch []lock.Change) []lock.Change {
	owned := append([]lock.Change(nil), batch...)
	for i := range owned {
		r := &owned[i].Next
		r.AnswerHeader = bytes.Clone(r.AnswerHeader)
		r.AnswerBody = bytes.Clone(r.AnswerBody)
		r.Request = bytes.Clone(r.Request)
		r.Tags = append([]string(nil), r.Tags...)
	}
	return owned
}

// apply makes one change, inside a transaction, and returns what stands then.
func (w *writer) apply(c *lock.Change, now int64) (lock.Record, error) {
	change := w.update
	if c.Expect == lock.None {
		change = w.insert
	}
	first, last, err := change(c, now)
	switch {
	case err == nil:
		return columns.Standing(c, now-first, now-last), nil
	case !errors.Is(err, sql.ErrNoRows):
		return lock.Record{}, err
	}
	r, over, err := readRow(w.selectRecord.QueryRowContext(w.ctx, recordArgs(&c.Next.Key, now)...))
	if over && r.Version != c.Next.Version {
		return lock.Record{}, err
	}
	return r, err
}

// insert and update return when the record was first and last seen, and
// sql.ErrNoRows where what they expect doesn't hold.
func (w *writer) insert(c *lock.Change, now int64) (first, last int64, err error) {
	args := append(columns.Args(&c.Next), offsets(&c.Next, now)...)
	result, err := w.insertRecord.ExecContext(w.ctx, append(args, now, now, now)...)
	if err != nil {
		return 0, 0, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return 0, 0, errors.Join(err, sql.ErrNoRows)
	}
	return now, now, nil
}

func (w *writer) update(c *lock.Change, now int64) (first, last int64, err error) {
	args := append(columns.Args(&c.Next)[columns.KeyCount:], offsets(&c.Next, now)...)
	k := &c.Next.Key
	args = append(args, c.Seen, now, now, k.Namespace, k.Scope, k.Digest[:], c.Expect[:], now)
	err = w.updateRecord.QueryRowContext(w.ctx, args...).Scan(&first, &last)
	return first, last, err
}

func offsets(n *lock.Record, now int64) []any {
	lease, runs, due, expires := columns.Offsets(n)
	for _, o := range []*int64{due, expires} {
		if o != nil {
			*o += now
		}
	}
	return []any{now + lease, now + runs, due, expires}
}

func recordArgs(k *lock.Key, now int64) []any {
	return []any{now, now, now, now, now, now, now, k.Namespace, k.Scope, k.Digest[:]}
}

// readRow reads the record of a row, and whether it is past its retention. No
// row is no record.
func readRow(from *sql.Row) (r lock.Record, over bool, err error) {
	var row columns.Row
	switch err := from.Scan(row.Dest()...); {
	case errors.Is(err, sql.ErrNoRows):
		return lock.Record{}, false, nil
	case err != nil:
		return lock.Record{}, false, err
	}
	r, err = row.Record()
	return r, row.Over(), err
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	done, err := s.calls.Begin()
	if err != nil {
		return nil, err
	}
	defer done()
	from, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	records := make([]lock.Record, len(keys))
	for i := range keys {
		if records[i], err = from.read(ctx, &keys[i]); err != nil {
			return nil, failed("read", err)
		}
	}
	return records, nil
}

func (d *reader) read(ctx context.Context, k *lock.Key) (lock.Record, error) {
	r, over, err := readRow(d.record.QueryRowContext(ctx, recordArgs(k, time.Now().UnixMicro())...))
	if over {
		return lock.Record{}, err
	}
	return r, err
}
