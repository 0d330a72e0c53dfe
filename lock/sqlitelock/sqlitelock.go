// Package sqlitelock is the store in one SQLite file: no server, durable, one
// host.
//
//	s := sqlitelock.Open("/var/lib/oncegate/claims.db", sqlitelock.Options{})
//	defer s.Close()
//
// # What it promises
//
// All of lock.Store. A change that was applied survives the loss of the
// process and of the power, as far as the disk keeps its own promise: every
// batch is one transaction that is synced (WAL, synchronous=FULL) before Apply
// returns. Several processes on one local file are right too. A network file
// system is not a local file; see Check.
//
// # Time
//
// The store's clock is the host's.
//
// # The file
//
// Open does not touch the file: the first call does, and makes it, readable by
// its owner alone, where there is none. Where that fails the call fails, and
// the next one tries again. Beside the file lie two more, ending in -wal and
// -shm; they belong to it.
package sqlitelock

import (
	"context"
	"database/sql"
	"errors"

	"oncegate/lock"
	"oncegate/lock/internal/calls"
)

// Options are the choices one has. The zero value is right for most.
type Options struct {
	// NoMigrate refuses a file whose schema is older than this program,
	// instead of bringing it up to date: Migrate then must have been called.
	NoMigrate bool
	// Readers is how many reads may go on at a time. Zero means 4.
	Readers int
}

// A Store keeps records in one SQLite file.
type Store struct {
	path    string
	options Options
	calls   calls.Calls
	jobs    chan *job     // to the writer
	stopped chan struct{} // closed when the writer has ended

	opening chan struct{} // holds one while reader is looked at or opened
	reader  *reader       // nil until the file was found fit
}

// Open returns the store in the file at path. It does no more than that: see
// the package comment.
func Open(path string, o Options) *Store {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	s := &Store{
		path: path, options: o,
		jobs: make(chan *job), stopped: make(chan struct{}), opening: make(chan struct{}, 1),
	}
	go s.write()
	return s
}

// Close implements lock.Store.
func (s *Store) Close() error {
	first := s.calls.Close()
	if !first {
		<-s.stopped
		return nil
	}
	close(s.jobs)
	<-s.stopped
	if s.reader == nil {
		return nil
	}
	return errors.Join(s.reader.record.Close(), s.reader.db.Close())
}

// Migrate brings the file's schema up to date, whatever Options say.
func (s *Store) Migrate(ctx context.Context) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	db, err := connect(s.path, writing, 1)
	if err != nil {
		return failed("open", err)
	}
	defer db.Close()
	return prepare(ctx, s.path, db, true)
}

// A reader is the pool of connections that read, and its statement.
type reader struct {
	db     *sql.DB
	record *sql.Stmt
}

// reading returns the pool for reads; the first call opens it.
func (s *Store) reading(ctx context.Context) (*reader, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, failed("open", ctx.Err())
	}
	if s.reader != nil {
		return s.reader, nil
	}
	db, err := connect(s.path, writing, 1)
	if err != nil {
		return nil, failed("open", err)
	}
	err = prepare(ctx, s.path, db, !s.options.NoMigrate)
	db.Close()
	if err != nil {
		return nil, err
	}
	if db, err = connect(s.path, reading, s.options.Readers); err != nil {
		return nil, failed("open", err)
	}
	stmt, err := db.PrepareContext(ctx, selectRecord)
	if err != nil {
		db.Close()
		return nil, failed("open", err)
	}
	s.reader = &reader{db: db, record: stmt}
	return s.reader, nil
}

var _ interface {
	lock.Store
	lock.Catalog
	lock.Checker
} = (*Store)(nil)
