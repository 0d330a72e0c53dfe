// Package pglock is the store in PostgreSQL, for any number of replicas.
//
//	s, err := pglock.Open(pglock.Options{URL: "postgres://once@db/shop"})
//	if err != nil { ... } // the URL is no URL of PostgreSQL's
//	defer s.Close()
//
// # What it promises
//
// All of lock.Store. A batch is one transaction and one round trip; a change
// that was applied survives what a commit on that server survives. See Check
// for what a server must be set to. The isolation level that counts is READ
// COMMITTED, the server's default.
//
// # Time
//
// The store's clock is the server's now().
//
// # Connections
//
// Open connects to nothing: the first call does, and makes the tables where
// they are missing. Nothing here needs a session of its own: no SET, no
// advisory lock, no temporary table. So the store works behind PgBouncer in
// transaction mode and behind RDS Proxy; where prepared statements turn out
// not to work, it goes on without them. Some connections of the pool are kept
// from reads, so that those who wait can't hold up those who renew and settle.
//
// A connection that turns out to be lost, or to lead to a server that has
// become read-only, is closed together with the idle ones, and the work is done
// once more on a new one. That is safe because every change is.
package pglock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oncegate/lock"
	"oncegate/lock/internal/calls"
	"oncegate/lock/internal/ready"
)

// Options say where the server is and how to speak with it.
type Options struct {
	// URL is a connection string of PostgreSQL's; it may name several hosts.
	URL string
	// Password, if not nil, is asked for the password before each new
	// connection, so that it may change. It must not block for long.
	Password func(context.Context) (string, error)
	// TLS, if not nil, takes the place of what URL says of TLS.
	TLS *tls.Config
	// Schema holds the tables. Empty means the first of the search path.
	Schema string
	// Pool is the most connections at a time, at least 2. Zero means 4.
	Pool int
	// Mode says how statements are sent. Zero is ModeAuto.
	Mode Mode
	// NoMigrate refuses tables that are missing or older than this program,
	// instead of making them: Migrate then must have been called.
	NoMigrate bool
}

// A Mode is a way of sending statements.
type Mode uint8

const (
	// ModeAuto prepares each statement once per connection, and leaves that
	// for good when the server turns out not to keep them.
	ModeAuto Mode = iota
	// ModePrepare always prepares.
	ModePrepare
	// ModeExec never does, nor does it LISTEN: for poolers that forbid it.
	ModeExec
)

// A Store keeps records in PostgreSQL.
type Store struct {
	options Options
	pool    *pgxpool.Pool
	sql     statements
	calls   calls.Calls
	bare    atomic.Bool   // statements are not prepared
	reads   chan struct{} // as many as reads may go on at a time

	ready *ready.Ready // the tables were found fit

	mu     sync.Mutex       // guards what follows
	purges map[string]purge // by namespace
	opens  map[string]opens // by namespace

	watchers atomic.Int64 // how many Watches are known to work
	rested   rested
}

// Open returns the store that the options describe. It connects to nothing
// yet.
func Open(o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The library's words may hold the password.
		return nil, errors.New("postgres: the url can't be read: it must look like " +
			"postgres://user@host:5432/database, with special characters percent-encoded and known parameters only")
	}
	if o.Pool == 0 {
		o.Pool = 4
	}
	if o.Pool < 2 {
		return nil, fmt.Errorf("postgres: a pool of %d is too small: one connection reads, so at least one more must write", o.Pool)
	}
	s := &Store{
		options: o,
		sql:     statementsFor(o.Schema),
		reads:   make(chan struct{}, o.Pool-reserved(o.Pool)),
		ready:   ready.New(),
		purges:  map[string]purge{},
		opens:   map[string]opens{},
	}
	s.bare.Store(o.Mode == ModeExec)
	if s.pool, err = s.newPool(config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s.rested.start(s)
	return s, nil
}

// reserved is how many connections of a pool reads may not have.
func reserved(pool int) int { return max(1, pool/4) }

func (s *Store) newPool(config *pgxpool.Config) (*pgxpool.Pool, error) {
	config.MaxConns = int32(s.options.Pool)
	config.MinConns, config.MinIdleConns = 0, 0
	config.MaxConnIdleTime = 5 * time.Minute
	cc := config.ConnConfig
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = 5 * time.Second
	}
	if s.options.TLS != nil {
		cc.TLSConfig = s.options.TLS
		for _, f := range cc.Fallbacks {
			f.TLSConfig = s.options.TLS
		}
	}
	if _, set := cc.RuntimeParams["application_name"]; !set {
		cc.RuntimeParams["application_name"] = "oncegate"
	}
	config.BeforeConnect = s.beforeConnect
	return pgxpool.NewWithConfig(context.Background(), config)
}

// beforeConnect completes the configuration of one new connection.
func (s *Store) beforeConnect(ctx context.Context, cc *pgx.ConnConfig) error {
	cc.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	if s.bare.Load() {
		cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if s.options.Password == nil {
		return nil
	}
	password, err := s.options.Password(ctx)
	if err != nil {
		return fmt.Errorf("password: %w", err)
	}
	cc.Password = password
	return nil
}

// Close implements lock.Store.
func (s *Store) Close() error {
	s.rested.stop()
	s.calls.Close()
	s.pool.Close()
	return nil
}

var _ interface {
	lock.Store
	lock.Catalog
	lock.Checker
	lock.Watcher
} = (*Store)(nil)
