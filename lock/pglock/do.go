package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// write runs f on a connection of the pool, and read on one that is not
// reserved for writing. Both bring the tables up to date first, where that has
// not been done, and run f once more on a new connection where the first turns
// out to be lost, so f must be safe to repeat. doing is for the error.
func (s *Store) write(ctx context.Context, doing string, f func(*pgx.Conn) error) error {
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

func (s *Store) read(ctx context.Context, doing string, f func(*pgx.Conn) error) error {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return failed(doing, ctx.Err())
	}
	return s.write(ctx, doing, f)
}

func (s *Store) do(ctx context.Context, doing string, f func(*pgx.Conn) error) error {
	lost, err := s.once(ctx, f)
	if err != nil && lost && ctx.Err() == nil {
		// Those that idle lead to where this one led.
		s.pool.Reset()
		_, err = s.once(ctx, f)
	}
	if err != nil {
		return failed(doing, err)
	}
	return nil
}

// once runs f on a connection, and reports whether an error means that the
// connection is of no more use, so that another may serve.
func (s *Store) once(ctx context.Context, f func(*pgx.Conn) error) (lost bool, err error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	if err = f(c.Conn()); err == nil {
		return false, nil
	}
	switch {
	case s.options.Mode == ModeAuto && unprepared(err):
		s.bare.Store(true)
		discard(ctx, c)
		return true, err
	case leadsNowhere(err):
		discard(ctx, c)
		return true, err
	}
	return c.Conn().IsClosed(), err
}

// discard closes a connection, so that the pool drops it. What the server
// makes of the farewell does not matter.
func discard(ctx context.Context, c *pgxpool.Conn) { _ = c.Conn().Close(ctx) }
