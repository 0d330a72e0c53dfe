package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

func opened(t *testing.T, o mysqllock.Options) *mysqllock.Store {
	t.Helper()
	s := open(t, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func change(text string) lock.Change {
	return lock.Change{Seen: true, Next: lock.Record{
		Key: lock.KeyOf("shop", "stripe", text), Text: text, State: lock.StateRunning, Attempt: 1,
		Token: lock.NewToken(), Version: lock.NewVersion(), Lease: time.Minute, RunsUntil: time.Minute,
	}}
}

func settle(c lock.Change) lock.Change {
	c.Expect, c.Next.Version, c.Seen = c.Next.Version, lock.NewVersion(), false
	c.Next.State, c.Next.Reason = lock.StateDone, lock.ReasonAnswered
	c.Next.Lease, c.Next.RunsUntil, c.Next.Retain = 0, 0, 35*24*time.Hour
	c.Next.AnswerStatus, c.Next.AnswerHeader, c.Next.AnswerBody = 200, make([]byte, 100), make([]byte, 300)
	return c
}

func mustApply(t testing.TB, s *mysqllock.Store, batch ...lock.Change) {
	t.Helper()
	results, err := s.Apply(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if !r.Applied(batch[i]) {
			t.Fatal("refused")
		}
	}
}

// 1213: transactions that lock the same rows in opposite orders. The server
// undoes one of them, which is then made again.
func TestDeadlock(t *testing.T) {
	server := servers.MariaDB(t)
	database := server.Database(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	one, two := change("one"), change("two")
	mustApply(t, s, one, two)
	// The store locks in the order of the digests, this session against it.
	low, high := one, two
	if string(one.Next.Digest[:]) > string(two.Next.Digest[:]) {
		low, high = two, one
	}
	tx, err := raw(t, server.DSN(database)).Begin()
	if err != nil {
		t.Fatal(err)
	}
	hold := func(c lock.Change) error {
		_, err := tx.Exec("UPDATE oncegate_claims SET deliveries = 7 WHERE digest = ?", c.Next.Digest[:])
		return err
	}
	if err := hold(high); err != nil {
		t.Fatal(err)
	}
	batch := []lock.Change{settle(one), settle(two)}
	told := make(chan error)
	go func() {
		results, err := s.Apply(t.Context(), batch)
		for i := range results {
			if !results[i].Applied(batch[i]) {
				err = errors.Join(err, results[i].Err, errors.New("not applied"))
			}
		}
		told <- err
	}()
	lockWait(t, raw(t, server.DSN(database)))
	held := hold(low) // closes the circle: one of the two is undone
	if held == nil {
		held = tx.Rollback()
	}
	if err := <-told; err != nil {
		t.Fatalf("%v; the other session: %v", err, held)
	}
}

// B32: another session holds an insert of the key that is not committed. It
// commits, or rolls back: the begin that waits for it is told what stands, and
// never nothing.
func TestConflict(t *testing.T) {
	server := servers.MariaDB(t)
	database := server.Database(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	mustApply(t, s, change("model"))
	waiting := raw(t, server.DSN(database))
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		t.Run("B32 "+end, func(t *testing.T) {
			c := change(end)
			tx, err := raw(t, server.DSN(database)).Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(`INSERT INTO oncegate_claims
				SELECT namespace, scope, ?, first_seen, last_seen, written_at, lease_until, runs_until, expires_at, due_at, deliveries,
					attempt, unanswered, answer_status, role, state, mark, token, 'another version.', names, payload, reason,
					key_text, group_key, tags, answer_header, answer_body, request
				FROM oncegate_claims LIMIT 1`, c.Next.Digest[:]); err != nil {
				t.Fatal(err)
			}
			told := make(chan lock.Result)
			go func() {
				results, err := s.Apply(t.Context(), []lock.Change{c})
				if err != nil {
					results = []lock.Result{{Err: err}}
				}
				told <- results[0]
			}()
			lockWait(t, waiting)
			finish := tx.Commit
			if end == "ROLLBACK" {
				finish = tx.Rollback
			}
			if err := finish(); err != nil {
				t.Fatal(err)
			}
			r := <-told
			if r.Err != nil || !r.Standing.Exists() || r.Applied(c) != (end == "ROLLBACK") {
				t.Fatalf("told %x, applied %v, %v", r.Standing.Version, r.Applied(c), r.Err)
			}
		})
	}
}

// lockWait waits until a transaction waits for another's lock. The server looks
// anew only where nobody has asked for 100 ms.
func lockWait(t *testing.T, db *sql.DB) {
	t.Helper()
	for start, n := time.Now(), 0; n == 0; time.Sleep(150 * time.Millisecond) {
		if err := db.QueryRow("SELECT count(*) FROM information_schema.innodb_lock_waits").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) > 20*time.Second {
			t.Fatal("nobody waits")
		}
	}
}

// The server is away when the store is opened, comes, goes and comes again.
func TestOutage(t *testing.T) {
	server := testenv.MariaDB(t)
	database := server.Database(t)
	t.Cleanup(func() { // the database is dropped after this
		if server.Pid() == 0 {
			server.Start(t)
		}
	})
	server.Stop(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	out := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := s.Apply(ctx, []lock.Change{change("out")}); !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("apply: %v", err)
		}
		if _, err := s.Read(ctx, []lock.Key{{}}); !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("read: %v", err)
		}
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("two calls of 2s in all took %v", waited)
		}
	}
	out()
	server.Start(t)
	e := change("e")
	mustApply(t, s, e)
	server.Kill(t)
	out()
	server.Start(t)
	mustApply(t, s, settle(e))
	server.Pause(t)
	out()
	server.Resume(t)
	mustApply(t, s, change("after"))
}

// B56: connections that lead to a server that has become read-only, or that
// the server ended, are replaced.
func TestFailover(t *testing.T) {
	server := testenv.MariaDB(t)
	database := server.Database(t)
	admin := raw(t, server.DSN(database))
	user := database
	exec(t, admin, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON %s.* TO '%s'@'%%' IDENTIFIED BY 'one'", database, user))
	s := opened(t, mysqllock.Options{URL: strings.Replace(server.URL(database), "once:once@", user+":one@", 1)})
	mustApply(t, s, change("a"))

	t.Run("B56 a server that has become read-only", func(t *testing.T) {
		exec(t, admin, "SET GLOBAL read_only = ON")
		if _, err := s.Apply(t.Context(), []lock.Change{change("b")}); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("a read-only server: %v", err)
		}
		exec(t, admin, "SET GLOBAL read_only = OFF")
		mustApply(t, s, change("b"))
	})
	t.Run("B56 1927 connections ended by the server", func(t *testing.T) {
		exec(t, admin, "KILL USER '"+user+"'@'%'")
		mustApply(t, s, change("c"))
		if _, err := s.Read(t.Context(), []lock.Key{{}}); err != nil {
			t.Error(err)
		}
	})
}

func TestPassword(t *testing.T) {
	server := testenv.MariaDB(t)
	database := server.Database(t)
	admin := raw(t, server.DSN(database))
	exec(t, admin, "GRANT ALL ON "+database+".* TO 'shop'@'%' IDENTIFIED BY 'p@ss/1'")
	password := "p@ss/1"
	s := opened(t, mysqllock.Options{
		URL:      strings.Replace(server.URL(database), "once:once@", "shop:n%40ne@", 1),
		Password: func(context.Context) (string, error) { return password, nil },
	})
	mustApply(t, s, change("a"))
	exec(t, admin, "SET PASSWORD FOR 'shop'@'%' = PASSWORD('zwei')")
	exec(t, admin, "KILL USER 'shop'@'%'")
	_, err := s.Apply(t.Context(), []lock.Change{change("b")})
	if !errors.Is(err, lock.ErrUnavailable) || strings.Contains(err.Error(), "p@ss") {
		t.Fatalf("with the old password: %v", err)
	}
	password = "zwei"
	mustApply(t, s, change("b"))
}

func TestCheck(t *testing.T) {
	server := testenv.MariaDB(t)
	database := server.Database(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	names := func() string {
		t.Helper()
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
	if got := names(); got != "" {
		t.Errorf("a sound server is weak in %s", got)
	}
	admin := raw(t, server.DSN(database))
	exec(t, admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	exec(t, admin, "SET GLOBAL read_only = ON")
	exec(t, admin, "ALTER TABLE oncegate_claims ENGINE=MyISAM")
	if got := names(); got != "flush read_only engine" {
		t.Errorf("a weak server is weak in %q", got)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []mysqllock.Options{
		{URL: "mysql://user:s3cr%t@host/db"},
		{URL: "mysql://user:s3cret@host/db?timeout=x"},
		{URL: "mysql://user:s3cret@host/"},
		{URL: "postgres://user:s3cret@host/db"},
		{URL: "mysql://user:s3cret@host/db", Pool: 1},
	} {
		_, err := mysqllock.Open(o)
		if err == nil || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestLostReplies(t *testing.T) {
	server := servers.MariaDB(t)
	proxy := locktest.NewProxy(t, server.Addr)
	url := strings.Replace(server.URL(server.Database(t)), server.Addr, proxy.Addr, 1)
	locktest.LostReplies(t, opened(t, mysqllock.Options{URL: url}), proxy)
}

func TestReadsDoNotStarveWrites(t *testing.T) {
	server := servers.MariaDB(t)
	for _, pool := range []int{2, 8} {
		proxy := locktest.NewProxy(t, server.Addr)
		url := strings.Replace(server.URL(server.Database(t)), server.Addr, proxy.Addr, 1)
		locktest.ReadsDoNotStarveWrites(t, opened(t, mysqllock.Options{URL: url, Pool: pool}), proxy, pool-max(1, pool/4))
	}
}
