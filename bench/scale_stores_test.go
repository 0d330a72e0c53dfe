package bench

import (
	"bufio"
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // asked for sizes
	_ "github.com/jackc/pgx/v5/stdlib"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/mysqllock"
	"oncegate/lock/pglock"
	"oncegate/lock/redislock"
	"oncegate/lock/sqlitelock"
)

// A scaledStore is a kind of store that is filled.
type scaledStore struct {
	name string
	// expires says that the store removes what is past retention by itself.
	expires bool
	open    func(t *testing.T) *opened
	// rest lets the server see to what was written, as it does in quiet times.
	rest func(t *testing.T, o *opened)
}

// An opened store can say how much room it takes, in bytes.
type opened struct {
	lock.Store
	lock.Catalog
	size func(t *testing.T) int64
	// purger returns a catalog that purges at once: PostgreSQL's rests after each
	// pass over the table.
	purger func(t *testing.T) lock.Catalog
	dsn    string
}

func scaled() []scaledStore {
	none := func(*testing.T, *opened) {}
	return []scaledStore{
		{name: "PostgreSQL", open: openPostgres, rest: func(t *testing.T, o *opened) {
			query(t, "pgx", o.dsn, "VACUUM (ANALYZE) oncegate_claims", nil)
		}},
		{name: "MariaDB", open: openMariaDB, rest: none},
		{name: "Redis", open: openRedis, rest: none, expires: true},
		{name: "SQLite", open: openSQLite, rest: none},
	}
}

func keep[S interface {
	lock.Store
	lock.Catalog
}](t *testing.T, s S, err error) *opened {
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &opened{Store: s, Catalog: s, purger: func(*testing.T) lock.Catalog { return s }}
}

func openPostgres(t *testing.T) *opened {
	p := servers.Postgres(t)
	url := p.URL(p.Database(t))
	s, err := pglock.Open(pglock.Options{URL: url})
	o := keep(t, s, err)
	o.dsn = url
	o.purger = func(t *testing.T) lock.Catalog {
		s, err := pglock.Open(pglock.Options{URL: url, NoMigrate: true})
		return keep(t, s, err)
	}
	o.size = func(t *testing.T) (n int64) {
		query(t, "pgx", url, "SELECT pg_total_relation_size('oncegate_claims')", &n)
		return n
	}
	return o
}

func openMariaDB(t *testing.T) *opened {
	m := servers.MariaDB(t)
	database := m.Database(t)
	s, err := mysqllock.Open(mysqllock.Options{URL: m.URL(database)})
	o := keep(t, s, err)
	o.size = func(t *testing.T) int64 {
		return fileSize(t, filepath.Join(m.Dir, "data", database, "oncegate_claims.ibd"))
	}
	return o
}

func openSQLite(t *testing.T) *opened {
	path := filepath.Join(t.TempDir(), "claims.db")
	o := keep(t, sqlitelock.Open(path, sqlitelock.Options{}), nil)
	o.size = func(t *testing.T) int64 { return fileSize(t, path) + fileSize(t, path+"-wal") }
	return o
}

// openRedis starts a server of its own, whose memory is that of its claims.
func openRedis(t *testing.T) *opened {
	r := testenv.Redis(t)
	s, err := redislock.Open(redislock.Options{URL: r.URL})
	o := keep(t, s, err)
	o.size = func(t *testing.T) int64 { return redisMemory(t, r.Addr) }
	return o
}

func query(t *testing.T, driver, dsn, text string, into any) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if into == nil {
		_, err = db.ExecContext(context.WithoutCancel(t.Context()), text)
	} else {
		err = db.QueryRow(text).Scan(into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func redisMemory(t *testing.T, addr string) int64 {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("INFO memory\r\n")); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if value, is := strings.CutPrefix(lines.Text(), "used_memory:"); is {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("INFO says no used_memory")
	return 0
}
