package witness

import (
	"context"
	"errors"
	"fmt"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
)

var (
	// ErrReplica says that the database is a replica, which may lag.
	ErrReplica = errors.New("the database is a replica, whose word is worth nothing; ask the primary")
	// ErrEmptyRow says that a query's row is 0, false or NULL.
	ErrEmptyRow = errors.New("the row's first column is 0, false or NULL; select the rows that exist (SELECT 1 FROM ...), not a count")
	// ErrValue says that a value which the question needs is not in the delivery,
	// or can't stand where it is to stand.
	ErrValue = errors.New("a value of the question can't be used")
	// ErrStatus says that an HTTP witness gave an answer that is neither yes nor
	// no.
	ErrStatus = errors.New("neither 2xx nor 404")
	// ErrTimeout says that there was no answer in time.
	ErrTimeout = errors.New("no answer in time")
)

// An Error says which rule's question failed, and why. It never holds any of the
// delivery's values.
type Error struct {
	Rule int // counted from 0
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("witness[%d]: %v", e.Rule, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A SQLError is what a database said: its code alone, for its text may hold the
// delivery's values.
type SQLError struct {
	Step string
	Code string // SQLSTATE, or the number of MySQL's or SQLite's error
}

func (e *SQLError) Error() string { return fmt.Sprintf("%s: database error %s", e.Step, e.Code) }

// failed translates a driver's error.
func failed(step string, err error) error {
	var pg *pgconn.PgError
	var my *mysqldriver.MySQLError
	var lite *sqlitedriver.Error
	switch {
	case errors.Is(err, ErrEmptyRow):
		return ErrEmptyRow
	case errors.As(err, &pg):
		return &SQLError{step, pg.Code}
	case errors.As(err, &my):
		return &SQLError{step, fmt.Sprint(my.Number)}
	case errors.As(err, &lite):
		return &SQLError{step, fmt.Sprint(lite.Code())}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", step, ErrTimeout)
	}
	return &SQLError{step, fmt.Sprintf("(%T)", err)}
}
