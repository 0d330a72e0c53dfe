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

// asks are questions about the table, and what it means where the answer is yes.
var asks = []struct{ question, weakness, detail string }{
	{"SELECT relpersistence <> 'p' FROM pg_class WHERE oid = $1::text::regclass", "unlogged",
		"the table is not logged: it is emptied after a crash; ALTER TABLE %s SET LOGGED"},
	{"SELECT row_security_active($1::text)", "row_security",
		"row security keeps records from oncegate's user, who then takes them for absent; ALTER TABLE %s DISABLE ROW LEVEL SECURITY"},
	{"SELECT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = $1::text::regclass)", "subscription",
		"the table %s is a copy that a subscription fills: what is claimed in it is not claimed at its publisher; connect to that"},
}

// Check implements lock.Checker. Its names are fsync, full_page_writes,
// synchronous_commit, isolation, read_only, unlogged, row_security and subscription.
func (s *Store) Check(ctx context.Context) ([]lock.Weakness, error) {
	settings := map[string]string{}
	var found, table []lock.Weakness
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
		table, err = s.ask(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, n := range needs {
		setting, known := settings[n.setting]
		switch {
		case !known:
			found = append(found, lock.Weakness{Name: n.weakness, Unknown: true, Detail: "the server does not tell " + n.setting})
		case slices.Contains(n.weak, setting):
			found = append(found, lock.Weakness{Name: n.weakness, Detail: fmt.Sprintf("%s is %s: %s", n.setting, setting, n.advice)})
		}
	}
	return append(found, table...), nil
}

// ask asks about the table. A server that speaks PostgreSQL's protocol and has
// another catalog may not know what is asked, but for the first, of the table itself.
func (s *Store) ask(ctx context.Context, c *pgx.Conn) (found []lock.Weakness, err error) {
	for i, a := range asks {
		var weak bool
		err := c.QueryRow(ctx, a.question, s.sql.claims).Scan(&weak)
		switch {
		case i > 0 && untold(err):
			found = append(found, lock.Weakness{Name: a.weakness, Unknown: true, Detail: "the server does not tell of " + a.weakness})
		case err != nil:
			return nil, err
		case weak:
			found = append(found, lock.Weakness{Name: a.weakness, Detail: fmt.Sprintf(a.detail, s.sql.claims)})
		}
	}
	return found, nil
}
