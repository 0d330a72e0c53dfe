package mysqllock

import (
	"context"
	"errors"

	"database/sql"
)

// write runs f, and read runs it on a connection that is not reserved for
// writing. Both bring the tables up to date first, where that has not been
// done, and run f once more where a connection turns out to be lost, so f must
// be safe to repeat. doing is for the error.
func (s *Store) write(ctx context.Context, doing string, f func() error) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	if err := s.ready.Do(ctx, func() error { return s.migrate(ctx, !s.options.NoMigrate) }); err != nil {
		return err
	}
	return s.do(ctx, doing, f)
}

func (s *Store) read(ctx context.Context, doing string, f func() error) error {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return failed(doing, ctx.Err())
	}
	return s.write(ctx, doing, f)
}

func (s *Store) do(ctx context.Context, doing string, f func() error) error {
	err := f()
	if err != nil && lost(err) && ctx.Err() == nil {
		// Those that idle lead to where this one led.
		s.db.SetMaxIdleConns(0)
		s.db.SetMaxIdleConns(s.options.Pool)
		err = f()
	}
	if err != nil {
		return failed(doing, err)
	}
	return nil
}

// transact runs f in a transaction.
func (s *Store) transact(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		// Where a rollback fails the connection is closed, which undoes
		// the transaction as well.
		if rollback := tx.Rollback(); !errors.Is(rollback, sql.ErrTxDone) {
			return errors.Join(err, rollback)
		}
		return err
	}
	return tx.Commit()
}
