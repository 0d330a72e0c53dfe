package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"oncegate/lock"
)

// needs are the settings that a server's promise hangs on, and the values that
// keep it: MariaDB's and MySQL's.
var needs = []struct {
	setting, weakness, sound, advice string
}{
	{"innodb_flush_log_at_trx_commit", "flush", "1 3", "commits are lost with the power, or with the server; set it to 1"},
	{"innodb_doublewrite", "doublewrite", "ON 1 DETECT_AND_RECOVER", "a page half written is lost; set it to ON"},
	{"read_only", "read_only", "OFF 0", "nothing can be written: it is a replica, or was made read-only; connect to the primary"},
	{"sync_binlog", "binlog", "1", "a replica that takes over may lack the last commits; set it to 1"},
}

// leastPacket is room for the largest request that is kept by default, and an answer,
// both of which are twice as long where each of their bytes must be escaped.
const leastPacket = 16 << 20

// Check implements lock.Checker. Its names are flush, doublewrite, read_only,
// binlog, packet and engine.
func (s *Store) Check(ctx context.Context) ([]lock.Weakness, error) {
	settings := map[string]string{}
	var engine string
	err := s.read(ctx, "check", func() error {
		q := &query{}
		q.add(`SHOW GLOBAL VARIABLES WHERE variable_name IN
			('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'read_only', 'log_bin', 'sync_binlog', 'max_allowed_packet')`)
		if err := s.query(ctx, q, func(rows *sql.Rows) error {
			var name, value string
			err := rows.Scan(&name, &value)
			settings[name] = value
			return err
		}); err != nil {
			return err
		}
		return s.db.QueryRowContext(ctx, `SELECT engine FROM information_schema.tables
			WHERE table_schema = database() AND table_name = 'oncegate_claims'`).Scan(&engine)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("mysql: check: the table oncegate_claims is gone: %w", lock.ErrUnfit)
	}
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(settings["log_bin"], "ON") {
		settings["sync_binlog"] = "1" // there is none to be synced
	}
	var found []lock.Weakness
	for _, n := range needs {
		value, known := settings[n.setting]
		switch {
		case !known:
			found = append(found, lock.Weakness{Name: n.weakness, Unknown: true, Detail: "the server does not tell " + n.setting})
		case !strings.Contains(" "+n.sound+" ", " "+value+" "):
			found = append(found, lock.Weakness{Name: n.weakness, Detail: fmt.Sprintf("%s is %s: %s", n.setting, value, n.advice)})
		}
	}
	if n, err := strconv.Atoi(settings["max_allowed_packet"]); err != nil {
		found = append(found, lock.Weakness{Name: "packet", Unknown: true, Detail: "the server does not tell max_allowed_packet"})
	} else if n < leastPacket {
		found = append(found, lock.Weakness{Name: "packet", Detail: fmt.Sprintf(
			"max_allowed_packet is %d bytes: the ending of an event with a large answer or request can't be written; set it to %d or more", n, leastPacket)})
	}
	if !strings.EqualFold(engine, "InnoDB") {
		found = append(found, lock.Weakness{Name: "engine", Detail: "the table's engine is " + engine +
			", which has no transactions: ALTER TABLE oncegate_claims ENGINE=InnoDB"})
	}
	return found, nil
}
