package faults

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // a file is locked by somebody else

	"oncegate/internal/testenv"
)

// A Store is where the gates of a world keep their claims. One that is a server
// is reached over wires, and may be stopped, killed and started.
type Store struct {
	Name   string
	Addr   string           // of the server
	Server *testenv.Process // nil: a file
	url    func(addr string) string
}

// NewStore starts the server of a store by its name, one for many worlds one
// after the other.
func NewStore(t testing.TB, name string) *Store {
	t.Helper()
	switch name {
	case "sqlite":
		return &Store{Name: name}
	case "postgres":
		p := testenv.Postgres(t)
		return newServer(name, p.Process, p.URL("postgres"))
	case "mariadb":
		m := testenv.MariaDB(t)
		return newServer(name, m.Process, m.URL(m.Database(t)))
	case "redis":
		r := testenv.Redis(t)
		return newServer(name, r.Process, r.URL)
	}
	t.Fatalf("no store is called %q: sqlite, postgres, mariadb or redis", name)
	return nil
}

func newServer(name string, p *testenv.Process, at string) *Store {
	u, err := url.Parse(at)
	if err != nil {
		panic(err) // testenv has made it
	}
	return &Store{Name: name, Addr: u.Host, Server: p, url: func(addr string) string {
		return strings.Replace(at, u.Host, addr, 1)
	}}
}

// lockFile keeps everybody else from writing to an SQLite file, until it is
// told to let go.
func lockFile(ctx context.Context, path string) (letGo func() error, err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=exclusive&_pragma=busy_timeout(3000)")
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, joined(err, db.Close()))
	}
	return func() error { return joined(tx.Rollback(), db.Close()) }, nil
}

func joined(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
