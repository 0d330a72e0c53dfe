package mysqllock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

func TestMigrate(t *testing.T) {
	server := servers.MariaDB(t)
	t.Run("B60 ten replicas that start at once", func(t *testing.T) {
		database := server.Database(t)
		var wg sync.WaitGroup
		for i := range 10 {
			s := opened(t, mysqllock.Options{URL: server.URL(database), Pool: 2})
			wg.Go(func() {
				if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin(fmt.Sprint(i))}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var n int
		err := raw(t, server.DSN(database)).QueryRow("SELECT count(*) FROM oncegate_migrations").Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("%d migrations were made; %v", n, err)
		}
	})
	t.Run("never", func(t *testing.T) {
		s := opened(t, mysqllock.Options{URL: server.URL(server.Database(t)), NoMigrate: true})
		if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("e")}); !errors.Is(err, lock.ErrUnfit) {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		locktest.MustApply(t, s, locktest.Begin("e"))
	})
	t.Run("serve needs fewer rights than migrate", func(t *testing.T) {
		database := server.Database(t)
		if err := opened(t, mysqllock.Options{URL: server.URL(database)}).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		exec(t, raw(t, server.DSN(database)),
			fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s.* TO '%[1]s'@'%%' IDENTIFIED BY 'one'", database))
		s := opened(t, mysqllock.Options{URL: strings.Replace(server.URL(database), "once:once@", database+":one@", 1)})
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
		database := server.Database(t)
		before := opened(t, mysqllock.Options{URL: server.URL(database)})
		e := locktest.Begin("e")
		locktest.MustApply(t, before, e)
		admin := raw(t, server.DSN(database))
		exec(t, admin, "INSERT INTO oncegate_migrations (version) VALUES (2)")
		exec(t, admin, "ALTER TABLE oncegate_claims ADD COLUMN later INT NOT NULL DEFAULT 7, ADD KEY (later)")
		after := opened(t, mysqllock.Options{URL: server.URL(database), NoMigrate: true})
		for i, s := range []*mysqllock.Store{before, after} {
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
}
