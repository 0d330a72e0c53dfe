package sqlitelock

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
)

// A migration only ever adds, so that the release before it goes on working on
// the new schema.
//
//go:embed migrations/*.sql
var migrations embed.FS

const (
	// schema is the number of the newest migration.
	schema = 1
	// applicationID marks a file as ours.
	applicationID = 0x6f6e6365
)

// migrateTo brings the schema up to date, in one transaction: of several
// processes that start at once one does it and the others find it done. A file
// from a newer release is left as it is.
func migrateTo(ctx context.Context, conn *sql.Conn, allowed bool) (err error) {
	if version, err := schemaOf(ctx, conn, allowed); err != nil || version >= schema {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return failed("migrate", err)
	}
	defer func() {
		if err != nil {
			_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			err = errors.Join(err, rollback)
		}
	}()
	version, err := schemaOf(ctx, conn, allowed)
	if err != nil {
		return err
	}
	for n := version + 1; n <= schema; n++ {
		script, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", n))
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		mark := fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", script, applicationID, n)
		if _, err := conn.ExecContext(ctx, mark); err != nil {
			return failed(fmt.Sprintf("migrate to %d", n), err)
		}
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return failed("migrate", err)
	}
	return nil
}

// schemaOf returns the number of the file's newest migration. A file that is
// not ours, or may not be brought up to date though it should be, is an error.
func schemaOf(ctx context.Context, conn *sql.Conn, migrate bool) (version int, err error) {
	// In one statement, so that what another process is making is seen as a whole
	// or not at all.
	const header = `SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)
	FROM pragma_user_version, pragma_application_id`
	var application, tables int
	if err := conn.QueryRowContext(ctx, header).Scan(&version, &application, &tables); err != nil {
		return 0, failed("migrate", err)
	}
	switch {
	case application != applicationID && (application != 0 || version != 0 || tables != 0):
		return 0, unfit("the file is another program's database: give oncegate a file of its own")
	case version < schema && !migrate:
		return 0, unfit(fmt.Sprintf("the schema is at %d and must be at %d: run `oncegate migrate`", version, schema))
	}
	return version, nil
}
