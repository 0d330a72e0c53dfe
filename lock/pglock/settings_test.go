package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// as makes the store's tables in a database of their own, and a user for it with
// settings of its own. It returns a store that speaks as that user.
func as(t *testing.T, p *testenv.PostgresServer, settings ...string) (s *pglock.Store, database string) {
	t.Helper()
	database = p.Database(t)
	if err := opened(t, pglock.Options{URL: p.URL(database), Schema: "once"}).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Exec(t, database, "CREATE ROLE "+database+" LOGIN PASSWORD 'one'; GRANT USAGE ON SCHEMA once TO "+database+
		"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA once TO "+database)
	t.Cleanup(func() { p.Exec(t, database, "DROP OWNED BY "+database+"; DROP ROLE "+database) })
	for _, set := range settings {
		p.Exec(t, database, "ALTER ROLE "+database+" SET "+set)
	}
	url := strings.Replace(p.URL(database), "once:once@", database+":one@", 1)
	return opened(t, pglock.Options{URL: url, Schema: "once"}), database
}

// What an administrator sets for oncegate's user counts, not only what the server has.
func TestCheckOfUser(t *testing.T) {
	p := servers.Postgres(t)
	for set, want := range map[string]string{
		"synchronous_commit = off":                          "synchronous_commit",
		"default_transaction_isolation = 'serializable'":    "isolation",
		"default_transaction_isolation = 'repeatable read'": "isolation",
		"default_transaction_read_only = on":                "read_only",
		"statement_timeout = '1min'":                        "",
	} {
		t.Run(set, func(t *testing.T) {
			s, _ := as(t, p, set)
			if got := locktest.Weaknesses(t, s); got != want {
				t.Errorf("weak in %q, not %q", got, want)
			}
		})
	}
	t.Run("row security that hides records", func(t *testing.T) {
		s, database := as(t, p)
		e := locktest.Begin("e")
		locktest.MustApply(t, s, e)
		p.Exec(t, database, "ALTER TABLE once.oncegate_claims ENABLE ROW LEVEL SECURITY")
		if got := locktest.Weaknesses(t, s); got != "row_security" {
			t.Errorf("weak in %q", got)
		}
		// Whoever accepts that: the key is still there, and nobody else gets it.
		p.Exec(t, database, "CREATE POLICY hides ON once.oncegate_claims USING (false) WITH CHECK (true)")
		if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("e")}); !errors.Is(err, lock.ErrUnfit) {
			t.Errorf("a claim on a hidden record: %v", err)
		}
	})
	t.Run("a copy that a subscription fills", func(t *testing.T) {
		s, database := as(t, p)
		p.Exec(t, database, "CREATE SUBSCRIPTION s_"+database+" CONNECTION 'dbname=elsewhere' PUBLICATION p WITH (connect = false, slot_name = NONE)")
		t.Cleanup(func() { p.Exec(t, database, "DROP SUBSCRIPTION s_"+database) })
		p.Exec(t, database, "INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, 'once.oncegate_claims'::regclass, 'r' FROM pg_subscription")
		if got := locktest.Weaknesses(t, s); got != "subscription" {
			t.Errorf("weak in %q", got)
		}
	})
}

// Under an isolation that was accepted, changes at the same time may fail, and none is
// made twice.
func TestIsolation(t *testing.T) {
	p := servers.Postgres(t)
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			s, _ := as(t, p, "default_transaction_isolation = '"+level+"'")
			for round := range 5 {
				var wg sync.WaitGroup
				var mu sync.Mutex // guards applied
				applied := 0
				for range 8 {
					wg.Go(func() {
						c := locktest.Begin(fmt.Sprint("e", round))
						for { // as a Gate does
							results, err := s.Apply(t.Context(), []lock.Change{c})
							if err == nil {
								mu.Lock()
								defer mu.Unlock()
								if results[0].Applied(c) {
									applied++
								}
								return
							}
							if !errors.Is(err, lock.ErrUnavailable) {
								t.Error(err)
								return
							}
						}
					})
				}
				if wg.Wait(); applied != 1 {
					t.Fatalf("%d have the claim", applied)
				}
			}
		})
	}
}

// Limits on the time of a session or statement end what is under way, and nothing of
// it is there; what comes next is done.
func TestTimeouts(t *testing.T) {
	p := servers.Postgres(t)
	for state, set := range map[string]string{
		"57014 statement_timeout": "statement_timeout = '100ms'",
		"55P03 lock_timeout":      "lock_timeout = '100ms'",
	} {
		t.Run(state, func(t *testing.T) {
			s, database := as(t, p, set)
			e := locktest.Begin("e")
			locktest.MustApply(t, s, e)
			c := session(t, p.URL(database))
			exec(t, c, "BEGIN")
			exec(t, c, "SELECT FROM once.oncegate_claims FOR UPDATE")
			if _, err := s.Apply(t.Context(), []lock.Change{locktest.Settle(e)}); !errors.Is(err, lock.ErrUnavailable) {
				t.Errorf("behind another's lock: %v", err)
			}
			exec(t, c, "ROLLBACK")
			locktest.MustApply(t, s, locktest.Settle(e))
		})
	}
	t.Run("B57 idle_in_transaction_session_timeout ends nothing", func(t *testing.T) {
		s, _ := as(t, p, "idle_in_transaction_session_timeout = '1ms'")
		for i := range 50 {
			e := locktest.Begin(fmt.Sprint(i))
			locktest.MustApply(t, s, e)
			locktest.MustApply(t, s, locktest.Settle(e))
		}
	})
	t.Run("B56 57P05 idle_session_timeout", func(t *testing.T) {
		s, database := as(t, p, "idle_session_timeout = '500ms'")
		c := session(t, p.URL(database))
		for i := range 2 {
			locktest.MustApply(t, s, locktest.Begin(fmt.Sprint(i)))
			for n := 1; n > 0; time.Sleep(10 * time.Millisecond) {
				err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", database).Scan(&n)
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The name of the schema counts, and no search path.
func TestSearchPath(t *testing.T) {
	p := servers.Postgres(t)
	t.Run("another table of the same name comes first", func(t *testing.T) {
		s, database := as(t, p, "search_path = shadow, once")
		p.Exec(t, database, "CREATE SCHEMA shadow; CREATE TABLE shadow.oncegate_claims (nothing int); "+
			"CREATE TABLE shadow.oncegate_migrations (version int); INSERT INTO shadow.oncegate_migrations VALUES (99); "+
			"GRANT USAGE ON SCHEMA shadow TO public; GRANT ALL ON ALL TABLES IN SCHEMA shadow TO public")
		e := locktest.Begin("e")
		locktest.MustApply(t, s, e)
		locktest.MustApply(t, s, locktest.Settle(e))
		if _, err := s.Count(t.Context(), "shop"); err != nil {
			t.Error(err)
		}
	})
	t.Run("no schema at all", func(t *testing.T) {
		database := p.Database(t)
		p.Exec(t, database, "ALTER DATABASE "+database+" SET search_path = ''")
		s := opened(t, pglock.Options{URL: p.URL(database)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := s.Read(ctx, []lock.Key{{}}); !errors.Is(err, lock.ErrUnfit) {
			t.Errorf("with no schema to make tables in: %v", err)
		}
	})
	t.Run("none but the schema's name", func(t *testing.T) {
		s, _ := as(t, p, "search_path = ''")
		e := locktest.Begin("e")
		locktest.MustApply(t, s, e)
		locktest.MustApply(t, s, locktest.Settle(e))
		if _, err := s.Purge(t.Context(), "shop", 10); err != nil {
			t.Error(err)
		}
		if got := locktest.Weaknesses(t, s); got != "" {
			t.Errorf("weak in %q", got)
		}
	})
}
