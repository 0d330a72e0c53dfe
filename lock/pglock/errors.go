package pglock

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"oncegate/lock"
)

// stateOf returns the SQLSTATE of what the server said; see the appendix
// "PostgreSQL Error Codes" of its manual. It is empty for all that the server
// did not say.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// failed wraps what the library or the server said. Where the server answers
// but can't serve as a store it is unfit. A statement that is wrong in itself
// is neither. All else counts as out of reach.
func failed(doing string, err error) error {
	switch state := stateOf(err); state {
	case "25006", // read_only_sql_transaction
		"3D000", // invalid_catalog_name: no such database
		"3F000", // invalid_schema_name
		"42P01", // undefined_table
		"42703", // undefined_column
		"42501": // insufficient_privilege
		return fmt.Errorf("postgres: %s: %w: %w", doing, lock.ErrUnfit, err)
	default:
		if len(state) == 5 && (state[:2] == "22" || state[:2] == "23" || state[:2] == "42") {
			return fmt.Errorf("postgres: %s: %w", doing, err)
		}
	}
	if errors.Is(err, lock.ErrUnfit) || errors.Is(err, lock.ErrUnavailable) {
		return fmt.Errorf("postgres: %s: %w", doing, err)
	}
	return fmt.Errorf("postgres: %s: %w: %w", doing, lock.ErrUnavailable, err)
}

// leadsNowhere reports whether the server said that this connection is over,
// or that it leads to a server that can't write any more, as after a failover.
func leadsNowhere(err error) bool {
	switch state := stateOf(err); state {
	case "25006", // read_only_sql_transaction
		"57P01", "57P02", "57P03", // admin_shutdown, crash_shutdown, cannot_connect_now
		"57P05": // idle_session_timeout
		return true
	default:
		return len(state) == 5 && state[:2] == "08" // connection exception
	}
}

// unprepared reports whether the server does not keep statements that were
// prepared, or keeps others': there is a pooler in front of it that hands each
// transaction another session.
func unprepared(err error) bool {
	switch stateOf(err) {
	case "26000", // invalid_sql_statement_name
		"42P05": // duplicate_prepared_statement
		return true
	}
	return false
}

// untold reports whether the server does not know, or does not let us know, what was
// asked of its catalog.
func untold(err error) bool {
	switch stateOf(err) {
	case "0A000", // feature_not_supported
		"42501",                            // insufficient_privilege
		"42P01", "42703", "42704", "42883": // undefined table, column, object, function
		return true
	}
	return false
}

// raced reports whether somebody else made the same thing at the same time.
func raced(err error) bool {
	switch stateOf(err) {
	case "23505", // unique_violation
		"42P06", "42P07", "42710", // duplicate schema, table, object
		"40001", "40P01", // serialization_failure, deadlock_detected
		"XX000": // internal_error: "tuple concurrently updated"
		return true
	}
	return false
}
