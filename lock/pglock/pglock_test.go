package pglock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/internal/testenv"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

var servers = &pglock.Servers

func TestStore(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	suite(t, pglock.Options{URL: p.URL(database), Schema: "Once's own"}, p, database)
}

// suite runs the suite on one table, which is emptied for each case.
func suite(t *testing.T, o pglock.Options, p *testenv.PostgresServer, database string) {
	if err := opened(t, o).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	locktest.Run(t, func(t testing.TB) locktest.Fixture {
		p.Exec(t, database, fmt.Sprintf("TRUNCATE %q.oncegate_claims", o.Schema))
		return fixture(o, p, database)
	})
}

// fixture is a place in the schema that the options name.
func fixture(o pglock.Options, p *testenv.PostgresServer, database string) locktest.Fixture {
	return locktest.Fixture{
		Open: func(t testing.TB) locktest.Store { return open(t, o) },
		Pass: func(t testing.TB, d time.Duration) {
			shift := fmt.Sprintf("- interval '1 microsecond' * %d", d.Microseconds())
			set := ""
			for _, column := range []string{
				"lease_until", "runs_until", "due_at", "expires_at", "first_seen", "last_seen", "written_at",
			} {
				set += fmt.Sprintf(", %s = %s %s", column, column, shift)
			}
			p.Exec(t, database, fmt.Sprintf(`UPDATE %q.oncegate_claims SET %s`, o.Schema, set[2:]))
		},
		Stored: func(t testing.TB) int { return stored(t, p.URL(database), fmt.Sprintf("%q.oncegate_claims", o.Schema)) },
	}
}

func open(t testing.TB, o pglock.Options) *pglock.Store {
	t.Helper()
	s, err := pglock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stored(t testing.TB, url, table string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
