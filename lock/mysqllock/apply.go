package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"oncegate/lock"
	"oncegate/lock/internal/order"
)

// rounds bounds how often the changes of a batch are made again because others
// were at work on the same rows at the same time.
const rounds = 8

var errRestless = fmt.Errorf("others changed the same records each time: %w", lock.ErrUnavailable)

// Apply implements lock.Store.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	a := &applying{s: s, batch: batch, results: make([]lock.Result, len(batch)), open: order.Of(batch)}
	for round := 0; len(a.open) > 0; round++ {
		if round == rounds {
			for _, i := range a.open {
				a.results[i] = lock.Result{Err: errRestless}
			}
			break
		}
		if err := a.round(ctx, round); err != nil {
			return nil, err
		}
	}
	return a.results, nil
}

// An applying is a batch on its way.
type applying struct {
	s       *Store
	batch   []lock.Change
	results []lock.Result
	open    []int // the places that have no result yet, in order of their keys
}

// round makes the open changes, and then looks at what refused some.
func (a *applying) round(ctx context.Context, round int) error {
	begins := !slices.ContainsFunc(a.open, func(i int) bool { return a.batch[i].Expect != lock.None })
	attempt := a.change
	if begins && round == 0 {
		attempt = a.insertAll
	}
	refused := a.open
	err := a.s.write(ctx, "apply", func() (err error) {
		refused, err = attempt(ctx)
		if raced(err) {
			refused, err = a.open, nil // nothing was changed
		}
		return err
	})
	if err != nil || len(refused) == 0 {
		a.open = nil
		return err
	}
	keys := []lock.Key{}
	for _, i := range refused {
		keys = append(keys, a.batch[i].Next.Key)
	}
	var stand []row
	err = a.s.write(ctx, "apply", func() (err error) {
		stand, err = a.s.rows(ctx, keys)
		return err
	})
	if err != nil {
		return err
	}
	a.open = nil
	for n, i := range refused {
		var settled bool
		if a.results[i].Standing, settled = standing(&a.batch[i], &stand[n], round > 0 || !begins); !settled {
			a.open = append(a.open, i)
		}
	}
	return nil
}

// standing says what stands, seen after a change was refused, and whether that
// settles it. What would have let the change pass, or looks as if it had been
// removed meanwhile, does not settle it unless the row was locked before.
func standing(c *lock.Change, r *row, looked bool) (lock.Record, bool) {
	switch {
	case r.record.Version == c.Next.Version:
		return r.record, true
	case r.over || !r.record.Exists():
		return lock.Record{}, c.Expect != lock.None && looked
	}
	return r.record, r.record.Version != c.Expect
}

// insertAll makes a batch of nothing but begins, all of keys that are new.
func (a *applying) insertAll(ctx context.Context) (refused []int, err error) {
	q := newInsert("INSERT")
	for _, i := range a.open {
		q.add(&a.batch[i], nil)
	}
	if _, err := a.s.db.ExecContext(ctx, q.text(), q.args...); err != nil {
		return nil, err
	}
	for _, i := range a.open {
		a.results[i].Standing = applied(&a.batch[i], nil)
	}
	return nil, nil
}

// change makes those changes whose expectation holds, in one transaction, and
// returns the others.
func (a *applying) change(ctx context.Context) (refused []int, err error) {
	err = a.s.transact(ctx, func(tx *sql.Tx) error {
		refused = nil
		stand, err := a.lock(ctx, tx)
		if err != nil {
			return err
		}
		inserts, replaces := newInsert("INSERT"), newInsert("REPLACE")
		for _, i := range a.open {
			c := &a.batch[i]
			old := stand[c.Next.Key]
			switch {
			case !holds(c, old):
				refused = append(refused, i)
				continue
			case old == nil:
				inserts.add(c, nil)
			default:
				replaces.add(c, old)
			}
			a.results[i].Standing = applied(c, old)
		}
		for _, q := range []*insert{inserts, replaces} {
			if len(q.args) > 0 {
				if _, err := tx.ExecContext(ctx, q.text(), q.args...); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return refused, err
}

// A held row is locked by the transaction that looked at it.
type held struct {
	version     lock.Version
	over        bool
	first, last int64 // moments
	now         int64 // when it was looked at
}

// lock locks the rows that are there under the open keys.
func (a *applying) lock(ctx context.Context, tx *sql.Tx) (map[lock.Key]*held, error) {
	keys := []lock.Key{}
	for _, i := range a.open {
		keys = append(keys, a.batch[i].Next.Key)
	}
	where, args := whereKeys(keys)
	rows, err := tx.QueryContext(ctx, `SELECT namespace, scope, digest, version, coalesce(expires_at <= `+now+`, 0),
		first_seen, last_seen, `+now+` FROM `+byKey+` WHERE `+where+` ORDER BY namespace, scope, digest FOR UPDATE`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stand := map[lock.Key]*held{}
	for rows.Next() {
		var k lock.Key
		var h held
		var digest, version []byte
		if err := rows.Scan(&k.Namespace, &k.Scope, &digest, &version, &h.over, &h.first, &h.last, &h.now); err != nil {
			return nil, err
		}
		copy(k.Digest[:], digest)
		copy(h.version[:], version)
		stand[k] = &h
	}
	return stand, rows.Err()
}

// holds reports whether what c expects holds, where old is what is there.
func holds(c *lock.Change, old *held) bool {
	switch {
	case old == nil:
		return c.Expect == lock.None
	case old.version == c.Next.Version:
		return false
	case old.over:
		return c.Expect == lock.None
	}
	return old.version == c.Expect
}

// applied returns what stands after c was applied over old.
func applied(c *lock.Change, old *held) lock.Record {
	r := c.Next
	r.FirstSeen, r.LastSeen, r.Written = 0, 0, 0
	if !r.Expires() {
		r.Retain = 0
	}
	if c.Expect == lock.None {
		return r
	}
	r.FirstSeen = time.Duration(old.now-old.first) * time.Microsecond
	if !c.Seen {
		r.LastSeen = time.Duration(old.now-old.last) * time.Microsecond
	}
	return r
}
