// Package mysqllock is the store in MariaDB or MySQL, for any number of
// replicas.
//
//	s, err := mysqllock.Open(mysqllock.Options{URL: "mysql://once:secret@db/shop"})
//	if err != nil { ... } // the URL can't be read
//	defer s.Close()
//
// # What it promises
//
// All of lock.Store, on InnoDB. A change that was applied survives what a
// commit on that server survives; see Check for what it must be set to.
//
// # How a batch is made
//
// A batch of nothing but begins is one INSERT, which is all that a fresh event
// costs. Where one of its keys is there already, and in every other batch, rows
// are locked and looked at first, then written, in one transaction. Nothing
// counts affected rows, which mean different things on different connections.
//
// # Galera
//
// On a cluster's nodes a transaction may be undone at its commit, as after a
// deadlock, and is made again. Each connection waits for what was committed on other
// nodes before it reads, so that replicas may speak with different ones.
//
// # Time
//
// The store's clock is the server's, in UTC.
//
// # Connections
//
// Open connects to nothing: the first call does, and makes the tables where
// they are missing. Some connections of the pool are kept from reads, so that
// those who wait can't hold up those who renew and settle. Work on a connection
// that turns out to be lost is done once more on a new one.
package mysqllock

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"time"

	"oncegate/lock"
	"oncegate/lock/internal/calls"
	"oncegate/lock/internal/ready"
)

// Options say where the server is and how to speak with it.
type Options struct {
	// URL is mysql://user:password@host:port/database, with the parameters
	// of go-sql-driver.
	URL string
	// Password, if not nil, is asked for the password before each new
	// connection, so that it may change. It must not block for long.
	Password func(context.Context) (string, error)
	// TLS, if not nil, takes the place of what URL says of TLS.
	TLS *tls.Config
	// Pool is the most connections at a time, at least 2. Zero means 4.
	Pool int
	// NoMigrate refuses tables that are missing or older than this program,
	// instead of making them: Migrate then must have been called.
	NoMigrate bool
}

// A Store keeps records in MariaDB or MySQL.
type Store struct {
	options Options
	db      *sql.DB
	calls   calls.Calls
	reads   chan struct{} // as many as reads may go on at a time

	ready *ready.Ready // the tables were found fit
}

// Open returns the store that the options describe. It connects to nothing
// yet.
func Open(o Options) (*Store, error) {
	if o.Pool == 0 {
		o.Pool = 4
	}
	if o.Pool < 2 {
		return nil, fmt.Errorf("mysql: a pool of %d is too small: one connection reads, so at least one more must write", o.Pool)
	}
	connector, err := newConnector(&o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		options: o,
		db:      sql.OpenDB(connector),
		reads:   make(chan struct{}, o.Pool-max(1, o.Pool/4)),
		ready:   ready.New(),
	}
	s.db.SetMaxOpenConns(o.Pool)
	s.db.SetMaxIdleConns(o.Pool)
	s.db.SetConnMaxIdleTime(5 * time.Minute)
	s.db.SetConnMaxLifetime(time.Hour)
	return s, nil
}

// Close implements lock.Store.
func (s *Store) Close() error {
	s.calls.Close()
	return s.db.Close()
}

var _ interface {
	lock.Store
	lock.Catalog
	lock.Checker
} = (*Store)(nil)
