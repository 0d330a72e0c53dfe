package mysqllock

import (
	"context"
	"embed"
	"fmt"

	"oncegate/lock"
)

// A migration only ever adds, so that the release before it goes on working on
// the new tables. It is one statement, which the server makes whole or not at
// all, and which does nothing where another replica came first.
//
//go:embed migrations/*.sql
var migrations embed.FS

// newest is the number of the newest migration.
const newest = 1

// Migrate brings the tables up to date, whatever Options say. It needs the
// right to CREATE; Store's other methods need no more than SELECT, INSERT,
// UPDATE and DELETE.
func (s *Store) Migrate(ctx context.Context) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	return s.migrate(ctx, true)
}

func (s *Store) migrate(ctx context.Context, allowed bool) error {
	return s.do(ctx, "migrate", func() error {
		version, err := s.version(ctx)
		if err != nil || version >= newest {
			return err
		}
		if !allowed {
			return fmt.Errorf("the tables are at %d and must be at %d: run `oncegate migrate`: %w", version, newest, lock.ErrUnfit)
		}
		statements := []string{`CREATE TABLE IF NOT EXISTS oncegate_migrations (
			version INT PRIMARY KEY, made_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB`}
		for n := version + 1; n <= newest; n++ {
			script, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", n))
			if err != nil {
				return err
			}
			statements = append(statements, string(script),
				fmt.Sprintf("INSERT IGNORE INTO oncegate_migrations (version) VALUES (%d)", n))
		}
		for _, statement := range statements {
			if _, err := s.db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// version returns the number of the last migration that was made, 0 for none.
func (s *Store) version(ctx context.Context) (version int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM oncegate_migrations").Scan(&version)
	if numberOf(err) == 1146 { // no such table
		return 0, nil
	}
	return version, err
}
