package faults

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

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
	clock  *testenv.Clock // the server's
	ahead  time.Duration  // of the host's
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
		return newServer(t, name, p.Process, p.URL("postgres"))
	case "mariadb":
		m := testenv.MariaDB(t)
		return newServer(t, name, m.Process, m.URL(m.Database(t)))
	case "redis":
		r := testenv.Redis(t)
		return newServer(t, name, r.Process, r.URL)
	}
	t.Fatalf("no store is called %q: sqlite, postgres, mariadb or redis", name)
	return nil
}

func newServer(t testing.TB, name string, p *testenv.Process, at string) *Store {
	u, err := url.Parse(at)
	if err != nil {
		panic(err) // testenv has made it
	}
	s := &Store{Name: name, Addr: u.Host, Server: p, clock: testenv.NewClock(t), url: func(addr string) string {
		return strings.Replace(at, u.Host, addr, 1)
	}}
	p.Stop(t)
	p.Under(s.clock)
	p.Start(t)
	return s
}

// URL is where a gate finds the store, past all wires; file is SQLite's.
func (s *Store) URL(file string) string {
	if s.Server == nil {
		return "sqlite:" + file
	}
	return s.url(s.Addr)
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
