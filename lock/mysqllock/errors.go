package mysqllock

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"oncegate/lock"
)

// numberOf returns the number of what the server said; see "Server Error
// Message Reference" in MySQL's manual, and "MariaDB Error Codes". It is 0 for
// all that the server did not say.
func numberOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

const unknownVariable = 1193

// failed wraps what the library or the server said. Where the server answers
// but can't serve as a store it is unfit. A statement that is wrong in itself
// is neither. All else counts as out of reach.
func failed(doing string, err error) error {
	switch numberOf(err) {
	case 1044, 1142, 1143, 1227, // no right to the database, table, column, or at all
		1049,             // no such database
		1054,             // no such column
		1146,             // no such table
		1290, 1792, 1836, // read-only
		1665: // the binary log can't take READ COMMITTED
		return fmt.Errorf("mysql: %s: %w: %w", doing, lock.ErrUnfit, err)
	case 1064, // syntax
		1062,             // duplicate key
		1048, 1264, 1366, // NULL, out of range, wrong value
		1406: // too long
		return fmt.Errorf("mysql: %s: %w", doing, err)
	}
	if errors.Is(err, lock.ErrUnfit) || errors.Is(err, lock.ErrUnavailable) {
		return fmt.Errorf("mysql: %s: %w", doing, err)
	}
	return fmt.Errorf("mysql: %s: %w: %w", doing, lock.ErrUnavailable, err)
}

// lost reports whether the connection broke, so that another may serve.
func lost(err error) bool {
	switch numberOf(err) {
	case 0:
	case 1053, 1927, // the server shuts down; the connection was killed
		1047: // a Galera node that has lost its cluster, or not yet found it
		return true
	default:
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// raced reports whether a transaction was undone because of others at work on
// the same rows, so that it may be made again.
func raced(err error) bool {
	switch numberOf(err) {
	case 1062, // somebody else inserted the row first
		1205, 1213, // the lock did not come in time; deadlock
		1020: // MariaDB: the row has changed since it was read
		return true
	}
	return false
}
