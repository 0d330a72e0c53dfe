package harness

import (
	"database/sql"
	"net"
	"strconv"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the shop's database is read
	_ "github.com/jackc/pgx/v5/stdlib" // over database/sql, whatever
	_ "modernc.org/sqlite"             // it is

	"oncegate/internal/testenv"
)

// A Database is where a shop keeps its payments.
type Database struct {
	env         map[string]string // as in Laravel's .env
	driver, dsn string            // as the tests read it
	url         string            // as a witness is told
}

// OnPostgres returns an empty database of a PostgreSQL server.
func OnPostgres(t testing.TB, p *testenv.PostgresServer) Database {
	t.Helper()
	name := p.Database(t)
	return Database{
		env: map[string]string{
			"DB_CONNECTION": "pgsql", "DB_HOST": "127.0.0.1", "DB_PORT": strconv.Itoa(p.Port),
			"DB_DATABASE": name, "DB_USERNAME": p.User, "DB_PASSWORD": p.Password,
		},
		driver: "pgx", dsn: p.URL(name), url: p.URL(name),
	}
}

// OnMariaDB returns an empty database of a MariaDB server.
func OnMariaDB(t testing.TB, m *testenv.MariaDBServer) Database {
	t.Helper()
	host, port, err := net.SplitHostPort(m.Addr)
	if err != nil {
		t.Fatal(err)
	}
	name := m.Database(t)
	return Database{
		env: map[string]string{
			"DB_CONNECTION": "mysql", "DB_HOST": host, "DB_PORT": port,
			"DB_DATABASE": name, "DB_USERNAME": m.User, "DB_PASSWORD": m.Password,
		},
		driver: "mysql", dsn: m.DSN(name), url: m.URL(name),
	}
}

// onSQLite is the database in a file, where nothing else is said.
func onSQLite(file string) Database {
	return Database{
		env:    map[string]string{"DB_CONNECTION": "sqlite", "DB_DATABASE": file},
		driver: "sqlite", dsn: "file:" + file + "?mode=ro&_pragma=busy_timeout(60000)",
		url: "sqlite://" + file,
	}
}

// open opens the database for the tests to read.
func (d Database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
