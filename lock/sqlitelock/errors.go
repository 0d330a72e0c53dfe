package sqlitelock

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"oncegate/lock"
)

// failed wraps what the library or the system said. Unless the file itself is
// wrong, the store counts as out of reach: locked, full, its time over.
func failed(doing string, err error) error {
	kind := lock.ErrUnavailable
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff { // the rest of the code says more of the same
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_AUTH:
			kind = lock.ErrUnfit
		}
	}
	if errors.Is(err, lock.ErrUnfit) {
		return fmt.Errorf("sqlite: %s: %w", doing, err)
	}
	return fmt.Errorf("sqlite: %s: %w: %w", doing, kind, err)
}

// busy reports whether another connection's lock was in the way.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func unfit(what string) error { return fmt.Errorf("sqlite: %w: %s", lock.ErrUnfit, what) }
