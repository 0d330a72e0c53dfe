package pglock

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
)

// A migration only ever adds, so that the release before it goes on working on
// the new tables.
//
//go:embed migrations/*.sql
var migrations embed.FS

// newest is the number of the newest migration.
const newest = 1

// Migrate brings the tables up to date, whatever Options say. It needs the
// right to make tables, and the schema where that is missing; Store's other
// methods need no more than SELECT, INSERT, UPDATE and DELETE.
func (s *Store) Migrate(ctx context.Context) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	return s.migrate(ctx, true)
}

// migrate sees to it that the tables are there. Any number of processes may do
// so at once, without any lock but the rows of the table of migrations: who
// comes second to a step fails, and looks again.
func (s *Store) migrate(ctx context.Context, allowed bool) error {
	for try := 0; ; try++ {
		err := s.do(ctx, "migrate", func(c *pgx.Conn) error { return s.migrateOn(ctx, c, allowed) })
		if err == nil || !raced(err) || try == 100 {
			return err
		}
		select {
		case <-time.After(time.Duration(try) * time.Millisecond):
		case <-ctx.Done():
			return failed("migrate", ctx.Err())
		}
	}
}

func (s *Store) migrateOn(ctx context.Context, c *pgx.Conn, allowed bool) error {
	version, err := s.version(ctx, c)
	if err != nil || version >= newest {
		return err
	}
	if !allowed {
		return fmt.Errorf("the tables are at %d and must be at %d: run `oncegate migrate`: %w", version, newest, lock.ErrUnfit)
	}
	if version == 0 {
		if err := s.makeMarks(ctx, c); err != nil {
			return err
		}
	}
	for n := version + 1; n <= newest; n++ {
		script, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", n))
		if err != nil {
			return err
		}
		// Several statements without parameters are one transaction. Its
		// first one is refused to all but the first who come here.
		text := fmt.Sprintf("INSERT INTO %s (version) VALUES (%d);\n%s", s.sql.marks, n,
			strings.ReplaceAll(string(script), ":claims", s.sql.claims))
		if _, err := c.PgConn().Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// makeMarks makes the table of migrations, and the schema. It asks for nothing
// that is there, so that it needs no right to make it.
func (s *Store) makeMarks(ctx context.Context, c *pgx.Conn) error {
	if s.options.Schema != "" {
		var there bool
		err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", s.options.Schema).Scan(&there)
		if err != nil {
			return err
		}
		if !there {
			if _, err := c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+s.sql.schema); err != nil {
				return err
			}
		}
	}
	_, err := c.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+s.sql.marks+
		" (version integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())")
	return err
}

// version returns the number of the last migration that was made, 0 for none.
func (s *Store) version(ctx context.Context, c *pgx.Conn) (version int, err error) {
	err = c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+s.sql.marks).Scan(&version)
	switch stateOf(err) {
	case "42P01", "3F000": // undefined_table, invalid_schema_name
		return 0, nil
	}
	return version, err
}
