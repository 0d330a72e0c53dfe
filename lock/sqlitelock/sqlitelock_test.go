package sqlitelock_test

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"oncegate/lock/locktest"
	"oncegate/lock/sqlitelock"
)

func TestStore(t *testing.T) {
	locktest.Run(t, func(t testing.TB) locktest.Fixture {
		path := filepath.Join(t.TempDir(), "odd % name?#.db")
		return locktest.Fixture{
			Open: func(testing.TB) locktest.Store { return sqlitelock.Open(path, sqlitelock.Options{}) },
			Pass: func(t testing.TB, d time.Duration) { pass(t, path, d) },
			Stored: func(t testing.TB) (n int) {
				db := raw(t, path)
				defer db.Close()
				if err := db.QueryRow("SELECT count(*) FROM claims").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			},
		}
	})
}

// pass moves all moments into the past.
func pass(t testing.TB, path string, d time.Duration) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	_, err := db.Exec(`UPDATE claims SET lease_until = lease_until - ?1, runs_until = runs_until - ?1,
		due_at = due_at - ?1, expires_at = expires_at - ?1, first_seen = first_seen - ?1,
		last_seen = last_seen - ?1, written_at = written_at - ?1`, d.Microseconds())
	if err != nil {
		t.Fatal(err)
	}
}

// raw opens the file without the store.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+escape(path)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func escape(path string) string { return (&url.URL{Path: path}).EscapedPath() }
