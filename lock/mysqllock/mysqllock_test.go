package mysqllock_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

// The suite must pass whichever way the connection counts affected rows.
func TestStore(t *testing.T) {
	for _, parameters := range []string{"", "?clientFoundRows=true"} {
		t.Run("parameters "+parameters, func(t *testing.T) {
			server := servers.MariaDB(t)
			database := server.Database(t)
			if err := opened(t, mysqllock.Options{URL: server.URL(database)}).Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			locktest.Run(t, func(t testing.TB) locktest.Fixture {
				exec(t, raw(t, server.DSN(database)), "DELETE FROM oncegate_claims")
				return locktest.Fixture{
					Open: func(t testing.TB) locktest.Store {
						return open(t, mysqllock.Options{URL: server.URL(database) + parameters})
					},
					Pass:   func(t testing.TB, d time.Duration) { pass(t, raw(t, server.DSN(database)), d) },
					Stored: func(t testing.TB) int { return stored(t, raw(t, server.DSN(database))) },
				}
			})
		})
	}
}

func open(t testing.TB, o mysqllock.Options) *mysqllock.Store {
	t.Helper()
	s, err := mysqllock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raw opens a database without the store.
func raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func stored(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM oncegate_claims").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// pass moves all moments into the past.
func pass(t testing.TB, db *sql.DB, d time.Duration) {
	t.Helper()
	var set []string
	for _, column := range []string{
		"lease_until", "runs_until", "due_at", "expires_at", "first_seen", "last_seen", "written_at",
	} {
		set = append(set, fmt.Sprintf("%s = %s - %d", column, column, d.Microseconds()))
	}
	exec(t, db, "UPDATE oncegate_claims SET "+strings.Join(set, ", "))
}
