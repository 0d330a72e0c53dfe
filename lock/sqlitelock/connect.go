package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"modernc.org/sqlite"
)

// What connections are told. A wait for another process's lock ends with the
// call's context, or after a minute; a checkpoint doesn't wait. A log that grew is
// cut to 64 MiB. What is removed is overwritten: an operator who forgets an event
// may have to. A commit moves the log only from 32 MiB on (8192 pages), which the
// checkpointer is to keep it below.
var (
	synced        = []string{"synchronous(FULL)", "fullfsync(1)", "checkpoint_fullfsync(1)"}
	waiting       = slices.Concat(synced, []string{"busy_timeout(60000)"})
	writing       = slices.Concat(waiting, []string{"journal_mode(WAL)", "secure_delete(1)", "journal_size_limit(67108864)", "wal_autocheckpoint(8192)"})
	reading       = slices.Concat(waiting, []string{"query_only(1)"})
	checkpointing = slices.Concat(synced, []string{"busy_timeout(0)"})
)

// connect returns a pool of connections to the file. It opens none yet.
func connect(path string, pragmas []string, most int) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	query := url.Values{"_pragma": pragmas}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: query.Encode()}
	connector, err := sqlite.NewConnector(at.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// makeFile makes the file, for its owner alone, where there is none. An old
// file is not opened: closing it would drop the locks that this process holds
// on it.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return f.Close()
}

// prepare makes a file fit: it is there, has a write-ahead log, and a schema
// that this program can use. While another process opens or closes the file as
// the first or the last, SQLite refuses at once where it otherwise waits, so
// prepare tries again until ctx is over.
func prepare(ctx context.Context, path string, db *sql.DB, migrate bool) error {
	for {
		err := tryPrepare(ctx, path, db, migrate)
		if !busy(err) {
			return err
		}
		timer := time.NewTimer(5 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func tryPrepare(ctx context.Context, path string, db *sql.DB, migrate bool) error {
	if err := makeFile(path); err != nil {
		return failed("make the file", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return failed("open", err)
	}
	defer conn.Close()
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return failed("open", err)
	}
	if mode != "wal" {
		return unfit(fmt.Sprintf("the file can't have a write-ahead log (journal_mode is %s): keep it on a local file system", mode))
	}
	return migrateTo(ctx, conn, migrate)
}
