package witness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	sqlitedriver "modernc.org/sqlite"
)

// A DatabaseSpec says where SQL is asked.
type DatabaseSpec struct {
	// URL is postgres://host:5432/name, mysql://host:3306/name (MariaDB too) or
	// sqlite:///path/to/file. Parameters of the driver may follow.
	URL string `yaml:"url"`
	// User and Password override those of the URL.
	User     string `yaml:"user"`
	Password string `yaml:"password"`
}

// A Database is where SQL is asked: some connections, made when they are needed.
// It may be used concurrently.
type Database struct {
	db   *sql.DB
	kind kind
}

// So many questions are asked at a time; more wait within their time.
const mostConnections = 4

var errURL = errors.New("must be postgres://host/name, mysql://host/name or sqlite:///path")

// OpenDatabase checks where SQL is asked, and connects to nobody yet. Its error
// holds no password.
func OpenDatabase(s DatabaseSpec) (*Database, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, errURL // the parser's own error quotes the text
	}
	if s.User != "" || s.Password != "" {
		user := s.User
		if user == "" && u.User != nil {
			user = u.User.Username()
		}
		u.User = url.UserPassword(user, s.Password)
	}
	d := &Database{}
	switch u.Scheme {
	case "postgres", "postgresql":
		d.kind = postgres
		d.db, err = openPostgres(u)
	case "mysql", "mariadb":
		d.kind = mysql
		d.db, err = openMySQL(u)
	case "sqlite":
		d.kind = sqlite
		d.db, err = openSQLite(u)
	default:
		return nil, errURL
	}
	if err != nil {
		return nil, err
	}
	d.db.SetMaxOpenConns(mostConnections)
	d.db.SetMaxIdleConns(1)
	d.db.SetConnMaxLifetime(5 * time.Minute) // so that a failover is followed
	return d, nil
}

// Close closes the connections.
func (d *Database) Close() error { return d.db.Close() }

func openPostgres(u *url.URL) (*sql.DB, error) {
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, errors.New("is no address of a PostgreSQL database: postgres://host:5432/name?sslmode=verify-full")
	}
	// Without named statements, so that a pooler may stand between; the server
	// says what type each value has.
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	return stdlib.OpenDB(*config), nil
}

func openSQLite(u *url.URL) (*sql.DB, error) {
	path := u.Path
	if path == "" || u.Host != "" || !filepath.IsAbs(path) {
		return nil, errors.New("needs the file's whole path: sqlite:///var/www/database.sqlite")
	}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(2000)"},
	}.Encode()}
	connector, err := sqlitedriver.NewConnector(at.String())
	if err != nil {
		return nil, errors.New("is no path of a SQLite file")
	}
	return sql.OpenDB(connector), nil
}

// primary returns ErrReplica where the server is no primary.
func (d *Database) primary(ctx context.Context, tx *sql.Tx) error {
	var replica bool
	var err error
	switch d.kind {
	case postgres:
		err = tx.QueryRowContext(ctx, "SELECT pg_is_in_recovery()").Scan(&replica)
	case mysql:
		err = tx.QueryRowContext(ctx, "SELECT @@global.read_only OR @@global.innodb_read_only").Scan(&replica)
	case sqlite:
		return nil
	}
	if err != nil {
		return failed("ask whether it is a replica", err)
	}
	if replica {
		return ErrReplica
	}
	return nil
}

// ask asks the query with its values.
func (q *query) ask(ctx context.Context, values map[string]any) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	tx, err := q.db.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: q.db.kind != sqlite})
	if err != nil {
		return Unknown, failed("connect", err)
	}
	defer func() {
		// It wrote nothing; a connection that can't even say so is dropped.
		_ = tx.Rollback()
	}()
	if err := q.db.primary(ctx, tx); err != nil {
		return Unknown, err
	}
	args := make([]any, len(q.args))
	for i, name := range q.args {
		args[i] = values[name]
	}
	rows, err := tx.QueryContext(ctx, q.text, args...)
	if err != nil {
		return Unknown, failed("query", err)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return Unknown, failed("query", err)
		}
		return No, nil
	}
	return q.row(rows)
}

// row makes yes of a row that says so.
func (q *query) row(rows *sql.Rows) (Answer, error) {
	columns, err := rows.Columns()
	if err != nil || len(columns) == 0 {
		return Unknown, failed("query", errors.Join(err, ErrEmptyRow))
	}
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(any)
	}
	if err := rows.Scan(into...); err != nil {
		return Unknown, failed("query", err)
	}
	switch first := into[0].(*any); v := (*first).(type) {
	case nil:
		return Unknown, ErrEmptyRow
	case bool:
		if !v {
			return Unknown, ErrEmptyRow
		}
	case []byte:
		if string(v) == "0" {
			return Unknown, ErrEmptyRow
		}
	default:
		if fmt.Sprint(v) == "0" {
			return Unknown, ErrEmptyRow
		}
	}
	return Yes, nil
}
