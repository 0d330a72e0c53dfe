package pglock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// B63, B64: the synchronous standby is away. What was committed here alone, while the
// caller's time was over, is sent again; and it still does not count.
func TestSynchronousStandby(t *testing.T) {
	server := testenv.Postgres(t)
	database := server.Database(t)
	s := opened(t, pglock.Options{URL: server.URL(database)})
	begun := locktest.Begin("begun")
	locktest.MustApply(t, s, begun)
	admin := session(t, server.URL(database))
	standby := func(name string) {
		t.Helper()
		exec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
		exec(t, admin, "SELECT pg_reload_conf()")
		for now := ""; now != name; {
			if err := session(t, server.URL(database)).QueryRow(t.Context(), "SHOW synchronous_standby_names").Scan(&now); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec(t, admin, "SET synchronous_commit = local")
	standby("away")
	for _, c := range []lock.Change{locktest.Begin("new"), locktest.Settle(begun)} {
		for again := false; ; {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			if _, err := s.Apply(ctx, []lock.Change{c}); !errors.Is(err, lock.ErrUnavailable) {
				t.Errorf("%s, sent again: %t: %v", c.Next.Text, again, err)
			}
			cancel()
			if again {
				break
			}
			got, err := s.Read(t.Context(), []lock.Key{c.Next.Key})
			if err != nil {
				t.Fatal(err)
			}
			again = got[0].Version == c.Next.Version // it is committed here
		}
	}
	standby("")
	locktest.MustApply(t, s, locktest.Begin("another"))
}
