package pglock

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
)

// needs are the settings that a server's promise hangs on, and which values
// break it.
var needs = []struct {
	setting, weakness string
	weak              []string
	advice            string
}{
	{"fsync", "fsync", []string{"off"}, "commits are lost with the power; set fsync = on"},
	{"full_page_writes", "full_page_writes", []string{"off"}, "a page half written is lost; set full_page_writes = on"},
	{"synchronous_commit", "synchronous_commit", []string{"off"}, "the last commits are lost in a crash; " +
		"set synchronous_commit = on, for oncegate's user at least"},
	{"default_transaction_isolation", "isolation", []string{"repeatable read", "serializable"}, "changes at the same time " +
		"fail; set default_transaction_isolation = 'read committed' for oncegate's user"},
	{"transaction_read_only", "read_only", []string{"on"}, "nothing can be written: it is a standby, or was made read-only; " +
		"connect to the primary (target_session_attrs=read-write)"},
}

// Check implements lock.Checker. Its names are fsync, full_page_writes,
// synchronous_commit, isolation, read_only and unlogged.
func (s *Store) Check(ctx context.Context) ([]lock.Weakness, error) {
	settings := map[string]string{}
	var persistence string
	err := s.read(ctx, "check", func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT name, setting FROM pg_settings WHERE name IN
			('fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation', 'transaction_read_only')`)
		if err != nil {
			return err
		}
		var name, setting string
		if _, err := pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
			settings[name] = setting
			return nil
		}); err != nil {
			return err
		}
		return c.QueryRow(ctx, "SELECT relpersistence::text FROM pg_class WHERE oid = $1::text::regclass", s.sql.claims).
			Scan(&persistence)
	})
	if err != nil {
		return nil, err
	}
	var found []lock.Weakness
	for _, n := range needs {
		setting, known := settings[n.setting]
		switch {
		case !known:
			found = append(found, lock.Weakness{Name: n.weakness, Unknown: true, Detail: "the server does not tell " + n.setting})
		case slices.Contains(n.weak, setting):
			found = append(found, lock.Weakness{Name: n.weakness, Detail: fmt.Sprintf("%s is %s: %s", n.setting, setting, n.advice)})
		}
	}
	if persistence != "p" {
		found = append(found, lock.Weakness{Name: "unlogged", Detail: fmt.Sprintf(
			"the table is not logged: it is emptied after a crash; ALTER TABLE %s SET LOGGED", s.sql.claims)})
	}
	return found, nil
}
