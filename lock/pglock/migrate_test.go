package pglock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

func TestMigrate(t *testing.T) {
	p := servers.Postgres(t)
	t.Run("B60 ten replicas that start at once", func(t *testing.T) {
		database := p.Database(t)
		var wg sync.WaitGroup
		for range 10 {
			s := opened(t, pglock.Options{URL: p.URL(database), Schema: "once", Pool: 2})
			wg.Go(func() {
				if _, err := s.Read(t.Context(), []lock.Key{{}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var n int
		err := session(t, p.URL(database)).QueryRow(t.Context(), "SELECT count(*) FROM once.oncegate_migrations").Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("%d migrations were made; %v", n, err)
		}
	})
	t.Run("never", func(t *testing.T) {
		database := p.Database(t)
		s := opened(t, pglock.Options{URL: p.URL(database), NoMigrate: true})
		if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("e")}); !errors.Is(err, lock.ErrUnfit) {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		locktest.MustApply(t, s, locktest.Begin("e"))
	})
	t.Run("serve needs fewer rights than migrate", func(t *testing.T) {
		database := p.Database(t)
		if err := opened(t, pglock.Options{URL: p.URL(database), Schema: "once"}).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Exec(t, database, "CREATE ROLE "+database+" LOGIN PASSWORD 'one'; GRANT USAGE ON SCHEMA once TO "+database+
			"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA once TO "+database)
		t.Cleanup(func() { p.Exec(t, database, "DROP OWNED BY "+database+"; DROP ROLE "+database) })
		s := opened(t, pglock.Options{URL: strings.Replace(p.URL(database), "once:once@", database+":one@", 1), Schema: "once"})
		e := locktest.Begin("e")
		locktest.MustApply(t, s, e)
		locktest.MustApply(t, s, locktest.Settle(e))
		if _, err := s.Purge(t.Context(), "shop", 10); err != nil {
			t.Error(err)
		}
		if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("check: %v, %v", found, err)
		}
	})
	t.Run("the release before goes on working on newer tables", func(t *testing.T) {
		database := p.Database(t)
		before := opened(t, pglock.Options{URL: p.URL(database)})
		e := locktest.Begin("e")
		locktest.MustApply(t, before, e)
		p.Exec(t, database, `INSERT INTO oncegate_migrations (version) VALUES (2);
			ALTER TABLE oncegate_claims ADD COLUMN later integer NOT NULL DEFAULT 7;
			CREATE INDEX ON oncegate_claims (later)`)
		after := opened(t, pglock.Options{URL: p.URL(database), NoMigrate: true})
		for i, s := range []*pglock.Store{before, after} {
			locktest.MustApply(t, s, locktest.Begin(fmt.Sprint("of ", i)))
			e = locktest.Settle(e)
			locktest.MustApply(t, s, e)
			got, err := s.Read(t.Context(), []lock.Key{e.Next.Key})
			if err != nil || got[0].Version != e.Next.Version {
				t.Errorf("read: %v", err)
			}
			if all, err := s.List(t.Context(), lock.Filter{Namespace: "shop"}, lock.Cursor{}, 10); err != nil || len(all) != 2+i {
				t.Errorf("listed %d, %v", len(all), err)
			}
			if _, err := s.Purge(t.Context(), "shop", 10); err != nil {
				t.Error(err)
			}
			if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
				t.Errorf("check: %v, %v", found, err)
			}
		}
	})
	t.Run("the tables vanish", func(t *testing.T) {
		database := p.Database(t)
		s := opened(t, pglock.Options{URL: p.URL(database)})
		locktest.MustApply(t, s, locktest.Begin("e"))
		p.Exec(t, database, "DROP TABLE oncegate_claims")
		if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("f")}); !errors.Is(err, lock.ErrUnfit) {
			t.Fatal(err)
		}
	})
}

func TestCheck(t *testing.T) {
	names := func(s *pglock.Store) string {
		found, err := s.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range found {
			all = append(all, w.Name)
		}
		return strings.Join(all, " ")
	}
	sound := servers.Postgres(t)
	if got := names(opened(t, pglock.Options{URL: sound.URL(sound.Database(t))})); got != "" {
		t.Errorf("a sound server is weak in %s", got)
	}
	weak := testenv.Postgres(t, "fsync=off", "full_page_writes=off", "synchronous_commit=off")
	database := weak.Database(t)
	s := opened(t, pglock.Options{URL: weak.URL(database)})
	if got := names(s); got != "fsync full_page_writes synchronous_commit" {
		t.Errorf("a weak server is weak in %q", got)
	}
	weak.Exec(t, database, "ALTER TABLE oncegate_claims SET UNLOGGED; "+
		"ALTER DATABASE "+database+" SET default_transaction_isolation = 'serializable'; "+
		"ALTER DATABASE "+database+" SET default_transaction_read_only = on; "+
		"ALTER DATABASE "+database+" SET synchronous_commit = on")
	if got := names(opened(t, pglock.Options{URL: weak.URL(database)})); got != "fsync full_page_writes isolation read_only unlogged" {
		t.Errorf("a weaker server is weak in %q", got)
	}
}
