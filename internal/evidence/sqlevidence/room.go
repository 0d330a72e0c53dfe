package sqlevidence

import (
	"context"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// Room is made of one entry in roomPart, and of roomMost at the most, so that
	// it takes a second or two in a large file as well.
	roomPart = 16
	roomMost = 4 * roomAtOnce
	// roomAtOnce bounds the rows of one DELETE, which lie all over the file, and
	// with them the write-ahead log.
	roomAtOnce = 2048
	// roomTries bounds how often room is made for one INSERT: what was removed
	// leaves holes in pages, and few whole pages at first.
	roomTries = 4
)

// full reports whether SQLite's file is as large as it may be.
func full(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_FULL
}

// insertOverOldest is exec, and where the file is as large as it may be, the
// oldest entries of the namespace make room.
func (s *Store) insertOverOldest(ctx context.Context, namespace any, exec func() error) error {
	err := exec()
	for range roomTries {
		if s.options.Most == 0 || !full(err) {
			return err
		}
		if err := s.makeRoom(ctx, namespace); err != nil {
			return err
		}
		err = exec()
	}
	return err
}

func (s *Store) makeRoom(ctx context.Context, namespace any) error {
	var n int64
	if err := s.db.QueryRowContext(ctx, s.dialect.text("SELECT count(*) FROM @ WHERE namespace = ?"), namespace).Scan(&n); err != nil {
		return err
	}
	for left := min(n/roomPart+1, roomMost); left > 0; left -= roomAtOnce {
		if _, err := s.db.ExecContext(ctx, s.dialect.text("DELETE FROM @ WHERE id IN (SELECT id FROM @ WHERE namespace = ? ORDER BY last_at LIMIT ?)"),
			namespace, min(left, roomAtOnce)); err != nil {
			return err
		}
	}
	return nil
}
