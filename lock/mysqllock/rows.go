package mysqllock

import (
	"context"
	"strings"

	"oncegate/lock"
	"oncegate/lock/internal/columns"
)

// now is the server's time in microseconds since 1970, the same all through a
// statement. It asks nothing of the session's time zone.
const now = `timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))`

const (
	times = `lease_until, runs_until, due_at, expires_at, first_seen, last_seen, written_at`
	// left gives times as a Row wants them.
	left = `lease_until - ` + now + `, runs_until - ` + now + `, due_at - ` + now + `, expires_at - ` + now + `, ` +
		now + ` - first_seen, ` + now + ` - last_seen, ` + now + ` - written_at`
)

// An insert is an INSERT or a REPLACE of several rows.
type insert struct {
	verb string
	rows []string
	args []any
}

func newInsert(verb string) *insert { return &insert{verb: verb} }

// add adds the row that c makes where old is there; nil where nothing is, or
// nothing that counts.
func (q *insert) add(c *lock.Change, old *held) {
	plain := columns.Args(&c.Next)
	lease, runs, due, expires := columns.Offsets(&c.Next)
	first, last := now, now
	q.args = append(append(q.args, plain...), lease, runs, due, expires)
	if c.Expect != lock.None {
		first = "?"
		q.args = append(q.args, old.first)
		if !c.Seen {
			last = "?"
			q.args = append(q.args, old.last)
		}
	}
	q.rows = append(q.rows, "("+strings.Repeat("?, ", len(plain))+now+" + ?, "+now+" + ?, "+now+" + ?, "+now+" + ?, "+
		first+", "+last+", "+now+")")
}

func (q *insert) text() string {
	return q.verb + " INTO oncegate_claims (" + columns.Plain + ", " + times + ") VALUES " + strings.Join(q.rows, ", ")
}

// byKey is the table, of which only the rows under some keys are looked at: by
// the primary key, and not by another index that has the namespace in front,
// whatever the servers think of how many rows that may be.
const byKey = `oncegate_claims FORCE INDEX (PRIMARY)`

// whereKeys returns a condition that the rows under these keys meet. It is no
// IN list, for which the servers don't all use the primary key.
func whereKeys(keys []lock.Key) (text string, args []any) {
	parts := make([]string, len(keys))
	for i := range keys {
		parts[i] = "(namespace = ? AND scope = ? AND digest = ?)"
		args = append(args, []byte(keys[i].Namespace), []byte(keys[i].Scope), keys[i].Digest[:])
	}
	return strings.Join(parts, " OR "), args
}

// A row is a record as it lies there, past its retention or not.
type row struct {
	record lock.Record
	over   bool
}

// rows returns what lies under each key.
func (s *Store) rows(ctx context.Context, keys []lock.Key) ([]row, error) {
	where, args := whereKeys(keys)
	found, err := s.db.QueryContext(ctx, `SELECT `+columns.Plain+`, `+left+` FROM `+byKey+` WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	byKey := map[lock.Key]row{}
	for found.Next() {
		var r columns.Row
		if err := found.Scan(r.Dest()...); err != nil {
			return nil, err
		}
		record, err := r.Record()
		if err != nil {
			return nil, err
		}
		byKey[record.Key] = row{record, r.Over()}
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	rows := make([]row, len(keys))
	for i, k := range keys {
		rows[i] = byKey[k]
	}
	return rows, nil
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	records := make([]lock.Record, len(keys))
	err := s.read(ctx, "read", func() error {
		rows, err := s.rows(ctx, keys)
		for i, r := range rows {
			records[i] = lock.Record{}
			if !r.over {
				records[i] = r.record
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}
