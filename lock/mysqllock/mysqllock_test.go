package mysqllock_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"oncegate/internal/testenv"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

// hostile is what an administrator may have set for other programs.
var hostile = []string{
	"--sql-mode=ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH", "--transaction-isolation=SERIALIZABLE",
	"--character-set-server=latin1", "--collation-server=latin1_german1_ci", "--default-time-zone=+13:00", "--autocommit=0",
	"--completion-type=CHAIN", "--init-connect=SET sql_select_limit = 1, autocommit = 0", "--lower-case-table-names=1",
	"--innodb-lock-wait-timeout=1", "--innodb-rollback-on-timeout",
}

// The suite must pass whichever way the connection counts affected rows, and whatever
// an administrator has made the default.
func TestStore(t *testing.T) {
	for parameters, server := range map[string]*testenv.MariaDBServer{
		"": servers.MariaDB(t), "?clientFoundRows=true": servers.MariaDB(t),
		"?collation=utf8mb4_unicode_ci&loc=Asia%2FTokyo&parseTime=true": testenv.MariaDB(t, hostile...),
	} {
		t.Run("parameters "+parameters, func(t *testing.T) {
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
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["autocommit"] = "1"
	db, err := sql.Open("mysql", config.FormatDSN())
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
