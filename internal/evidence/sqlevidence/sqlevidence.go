// Package sqlevidence keeps evidence in a table: in an SQLite file of its own,
// in PostgreSQL, or in MariaDB and MySQL.
//
//	s, err := sqlevidence.SQLite("/var/lib/oncegate/evidence.db", sqlevidence.Options{})
//	if err != nil { ... }
//	defer s.Close()
//
// Evidence is written behind, and its loss loses no event. So it has
// connections, and on SQLite a file and a sync mode, of its own: however much of
// it there is, no claim waits for it.
//
// What an entry says besides what one selects and counts by is JSON in one column,
// encrypted where there is a key. Time, counts, route, provider, result and status
// are in clear, and a digest in the place of the event key.
//
// Nothing is connected to before the first call, which also makes the table.
// Statements are not prepared, so that a pooler in transaction mode serves.
package sqlevidence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"oncegate/internal/atrest"
	"oncegate/internal/evidence"
	"oncegate/lock"
)

// Options are the choices one has.
type Options struct {
	// NoMigrate makes neither file nor table: Migrate then must have been called.
	NoMigrate bool
	// Ring encrypts what entries say. Nil: nothing is encrypted.
	Ring *atrest.Keyring
	// Most bounds SQLite's file, in bytes, but for some MB that its log takes beside
	// it: when it is full, the oldest entries make room. 0: nothing does.
	Most int64
}

// A Store keeps evidence in a table.
type Store struct {
	options Options
	db      *sql.DB
	dialect dialect
	file    string      // SQLite's; else empty
	ready   atomic.Bool // the table is there
	making  chan struct{}
}

func newStore(db *sql.DB, d dialect, o Options) *Store {
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(1)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return &Store{options: o, db: db, dialect: d, making: make(chan struct{}, 1)}
}

// pageSize is that of SQLite's files, in bytes, unless one says otherwise.
const pageSize = 4096

// SQLite keeps evidence in the file at path, which is made where there is none,
// readable by its owner alone.
func SQLite(path string, o Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	pragmas := []string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "secure_delete(1)", "journal_size_limit(16777216)"}
	if o.Most > 0 {
		pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", o.Most/pageSize))
	}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	connector, err := sqlite.NewConnector(at.String())
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	s := newStore(sql.OpenDB(connector), sqliteDialect, o)
	s.file = abs
	return s, nil
}

// makeFile makes SQLite's file, where there is none.
func (s *Store) makeFile(allowed bool) error {
	if !allowed {
		_, err := os.Stat(s.file)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Postgres keeps evidence beside the claims.
func Postgres(text, schema string, o Options) (*Store, error) {
	pool, err := pgxpool.ParseConfig(text) // which takes the pool's parameters out
	if err != nil {
		return nil, errors.New("evidence: the url of PostgreSQL can't be read") // the library's words may hold the password
	}
	config := pool.ConnConfig
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	if _, set := config.RuntimeParams["application_name"]; !set {
		config.RuntimeParams["application_name"] = "oncegate evidence"
	}
	d := postgresDialect
	if schema != "" {
		d.table = pgx.Identifier{schema, d.table}.Sanitize()
	}
	return newStore(stdlib.OpenDB(*config), d, o), nil
}

// MySQL keeps evidence in the database that the connector leads to.
func MySQL(c driver.Connector, o Options) *Store { return newStore(sql.OpenDB(c), mysqlDialect, o) }

// Close implements evidence.Store.
func (s *Store) Close() error { return s.db.Close() }

// Migrate makes the table where it is missing, whatever Options say.
func (s *Store) Migrate(ctx context.Context) error { return s.prepare(ctx, true) }

func (s *Store) makeReady(ctx context.Context) error { return s.prepare(ctx, !s.options.NoMigrate) }

// prepare sees to it that the table is there. Any number of processes may do so
// at once.
func (s *Store) prepare(ctx context.Context, allowed bool) error {
	if s.ready.Load() {
		return nil
	}
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return failed("open", ctx.Err())
	}
	if s.ready.Load() {
		return nil
	}
	if s.file != "" {
		if err := s.makeFile(allowed); err != nil {
			return failed("open", err)
		}
	}
	// Looked for first: who may not make tables may still use this one.
	if _, err := s.db.ExecContext(ctx, s.dialect.text(`SELECT 1 FROM @ WHERE namespace = ''`)); err != nil {
		if !allowed {
			return failed("look for the table; `oncegate migrate` makes it", err)
		}
		if err := s.makeTable(ctx); err != nil {
			return failed("make the table", err)
		}
	}
	s.ready.Store(true)
	return nil
}

// makeTable begins anew where it fails: in PostgreSQL what is made IF NOT EXISTS
// fails all the same where another process makes it at the same moment. Each
// statement can, once; afterwards it exists.
func (s *Store) makeTable(ctx context.Context) (err error) {
	for range 1 + len(s.dialect.tables) {
		if err = s.tryTable(ctx); err == nil {
			break
		}
	}
	return err
}

func (s *Store) tryTable(ctx context.Context) error {
	for _, statement := range s.dialect.tables {
		if _, err := s.db.ExecContext(ctx, s.dialect.text(statement)); err != nil {
			return err
		}
	}
	return nil
}

// failed says what could not be done. The difference that callers need is only
// that it could not.
func failed(doing string, err error) error {
	return fmt.Errorf("evidence: %s: %w: %w", doing, lock.ErrUnavailable, err)
}

// A dialect is what the databases don't have in common.
type dialect struct {
	table   string
	tables  []string
	numbers bool   // placeholders are $1, not ?
	replace string // ends an INSERT that may meet itself
}

// text puts the table's name for @, and numbers placeholders.
func (d *dialect) text(s string) string {
	s = strings.ReplaceAll(s, "@", d.table)
	if !d.numbers {
		return s
	}
	var b strings.Builder
	for n, part := range strings.Split(s, "?") {
		if n > 0 {
			fmt.Fprintf(&b, "$%d", n)
		}
		b.WriteString(part)
	}
	return b.String()
}

const conflict = `ON CONFLICT (id) DO UPDATE SET last_at = excluded.last_at, number = excluded.number, facts = excluded.facts`

var (
	sqliteDialect = dialect{
		table: "oncegate_evidence",
		tables: []string{`CREATE TABLE IF NOT EXISTS @ (
			id BLOB PRIMARY KEY, namespace TEXT NOT NULL, scope TEXT NOT NULL, digest BLOB NOT NULL,
			first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, number INTEGER NOT NULL, kind INTEGER NOT NULL,
			route TEXT NOT NULL, provider TEXT NOT NULL, result TEXT NOT NULL, status INTEGER NOT NULL,
			again INTEGER NOT NULL, late INTEGER NOT NULL, facts BLOB NOT NULL) WITHOUT ROWID`,
			`CREATE INDEX IF NOT EXISTS oncegate_evidence_key ON @ (namespace, scope, digest)`,
			`CREATE INDEX IF NOT EXISTS oncegate_evidence_time ON @ (namespace, last_at)`},
		replace: conflict,
	}
	postgresDialect = dialect{
		table: "oncegate_evidence",
		tables: []string{`CREATE TABLE IF NOT EXISTS @ (
			id bytea PRIMARY KEY, namespace text NOT NULL, scope text NOT NULL, digest bytea NOT NULL,
			first_at bigint NOT NULL, last_at bigint NOT NULL, number bigint NOT NULL, kind smallint NOT NULL,
			route text NOT NULL, provider text NOT NULL, result text NOT NULL, status integer NOT NULL,
			again smallint NOT NULL, late smallint NOT NULL, facts bytea NOT NULL)`,
			`CREATE INDEX IF NOT EXISTS oncegate_evidence_key ON @ (namespace, scope, digest)`,
			`CREATE INDEX IF NOT EXISTS oncegate_evidence_time ON @ (namespace, last_at)`},
		numbers: true, replace: conflict,
	}
	mysqlDialect = dialect{
		table: "oncegate_evidence",
		tables: []string{`CREATE TABLE IF NOT EXISTS @ (
			id BINARY(16) PRIMARY KEY, namespace VARBINARY(64) NOT NULL, scope VARBINARY(128) NOT NULL, digest BINARY(32) NOT NULL,
			first_at BIGINT NOT NULL, last_at BIGINT NOT NULL, number BIGINT NOT NULL, kind TINYINT NOT NULL,
			route VARBINARY(64) NOT NULL, provider VARBINARY(64) NOT NULL, result VARBINARY(32) NOT NULL, status INT NOT NULL,
			again TINYINT NOT NULL, late TINYINT NOT NULL, facts MEDIUMBLOB NOT NULL,
			KEY evidence_key (namespace, scope, digest), KEY evidence_time (namespace, last_at)) ENGINE=InnoDB`},
		replace: `ON DUPLICATE KEY UPDATE last_at = VALUES(last_at), number = VALUES(number), facts = VALUES(facts)`,
	}
)

var _ evidence.Store = (*Store)(nil)
