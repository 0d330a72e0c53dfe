package pglock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
	"oncegate/lock/internal/columns"
	"oncegate/lock/internal/order"
)

// rounds bounds how often a change is made again because nobody can say what
// stands: what refused it was gone when it was looked at.
const rounds = 5

var errRestless = fmt.Errorf("what stands changed each time it was looked at: %w", lock.ErrUnavailable)

// Apply implements lock.Store.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	results := make([]lock.Result, len(batch))
	open := order.Of(batch)
	for round := 0; len(open) > 0; round++ {
		if round == rounds {
			for _, i := range open {
				results[i] = lock.Result{Err: errRestless}
			}
			break
		}
		err := s.write(ctx, "apply", func(c *pgx.Conn) error {
			return s.transact(ctx, c, batch, open, results, round > 0)
		})
		if err != nil {
			return nil, err
		}
		open = slices.DeleteFunc(open, func(i int) bool { return settled(&batch[i], &results[i].Standing, round) })
	}
	if err := s.confirm(ctx, batch, results); err != nil {
		return nil, err
	}
	s.rested.tell(batch, results)
	return results, nil
}

// confirm writes those changes as they stand that an earlier transaction made, which
// nobody may have waited for to its end: its caller's time was over while it waited
// for a synchronous standby. A transaction that writes nothing waits for none.
func (s *Store) confirm(ctx context.Context, batch []lock.Change, results []lock.Result) error {
	var b pgx.Batch
	for i := range results {
		// What was written just now is of no age.
		if c := &batch[i]; results[i].Applied(*c) && results[i].Standing.Written != 0 {
			k := &c.Next.Key
			b.Queue(s.sql.confirm, k.Namespace, k.Scope, k.Digest[:], c.Next.Version[:])
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return s.write(ctx, "apply", func(c *pgx.Conn) error { return c.SendBatch(ctx, &b).Close() })
}

// settled reports whether r can be what stands after c. If not, it was written
// or removed in the moment between the change and the look at what refused it.
func settled(c *lock.Change, r *lock.Record, round int) bool {
	switch {
	case r.Exists():
		return r.Version != c.Expect
	case c.Expect == lock.None:
		return false
	default:
		return round > 0
	}
}

// transact makes the changes at these places of the batch: in one transaction
// and one round trip, a statement for each change, and one for what stands
// where it was refused. That second one is left out, unless look says so, where
// a version is expected: such a change is hardly ever refused, and a look costs
// the server two fifths of what a change does.
func (s *Store) transact(
	ctx context.Context, c *pgx.Conn, batch []lock.Change, places []int, results []lock.Result, look bool,
) error {
	var b pgx.Batch
	for _, i := range places {
		change, r := &batch[i], &results[i].Standing
		*r = lock.Record{}
		s.queueChange(&b, change, r)
		if look || change.Expect == lock.None {
			s.queueStanding(&b, change, r)
		}
	}
	return c.SendBatch(ctx, &b).Close()
}

func (s *Store) queueChange(b *pgx.Batch, c *lock.Change, r *lock.Record) {
	lease, runs, due, expires := columns.Offsets(&c.Next)
	text, args := s.sql.insert, append(columns.Args(&c.Next), lease, runs, due, expires)
	if c.Expect != lock.None {
		text, args = s.sql.update, append(args, c.Seen, c.Expect[:])
	}
	b.Queue(text, args...).QueryRow(func(row pgx.Row) error {
		var first, last int64
		switch err := row.Scan(&first, &last); {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		*r = columns.Standing(c, first, last)
		return nil
	})
}

func (s *Store) queueStanding(b *pgx.Batch, c *lock.Change, r *lock.Record) {
	k := &c.Next.Key
	b.Queue(s.sql.standing, k.Namespace, k.Scope, k.Digest[:], c.Next.Version[:]).QueryRow(func(row pgx.Row) error {
		found, over, err := readRow(row)
		switch {
		case err != nil || !found.Exists():
			return err
		case over && found.Version != c.Next.Version:
			return nil
		}
		*r = found
		return nil
	})
}

// readRow reads the record of a row, and whether it is past its retention. No
// row is no record.
func readRow(from pgx.Row) (r lock.Record, over bool, err error) {
	var row columns.Row
	switch err := from.Scan(row.Dest()...); {
	case errors.Is(err, pgx.ErrNoRows):
		return lock.Record{}, false, nil
	case err != nil:
		return lock.Record{}, false, err
	}
	r, err = row.Record()
	return r, row.Over(), err
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	records := make([]lock.Record, len(keys))
	err := s.read(ctx, "read", func(c *pgx.Conn) error {
		var b pgx.Batch
		for i := range keys {
			k := &keys[i]
			b.Queue(s.sql.read, k.Namespace, k.Scope, k.Digest[:]).QueryRow(func(row pgx.Row) error {
				r, over, err := readRow(row)
				if over {
					r = lock.Record{}
				}
				records[i] = r
				return err
			})
		}
		return c.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}
