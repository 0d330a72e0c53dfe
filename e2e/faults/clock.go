package faults

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// A Clock is that of a world's store, by which leases and app limits are judged.
// That of SQLite is the host's, as each gate's process sees it, and nothing shows
// another to a program that is linked statically. But what a gate makes of it is
// to compare it with the moments in the file. So those are moved the other way.
type Clock struct {
	Store *Store
	File  string // SQLite's
}

// Move puts the clock forward, or back.
func (c Clock) Move(ctx context.Context, by time.Duration) error {
	if c.Store.Server == nil {
		return moveMoments(ctx, c.File, -by)
	}
	return c.Store.setClock(c.Store.ahead + by)
}

// setClock sets the clock of a server so far before the host's.
func (s *Store) setClock(ahead time.Duration) error {
	if s.Server == nil {
		return nil
	}
	s.ahead = ahead
	return s.clock.Set(ahead)
}

// moveMoments moves all moments of claims in an SQLite file.
func moveMoments(ctx context.Context, path string, by time.Duration) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `UPDATE claims SET lease_until = lease_until + ?1, runs_until = runs_until + ?1, due_at = due_at + ?1,
		expires_at = expires_at + ?1, first_seen = first_seen + ?1, last_seen = last_seen + ?1, written_at = written_at + ?1`, by.Microseconds())
	if err != nil {
		err = fmt.Errorf("move the moments in %s: %w", path, err)
	}
	return joined(err, db.Close())
}
