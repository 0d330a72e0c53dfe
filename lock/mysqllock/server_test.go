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

// 1213: transactions that lock the same rows in opposite orders. The server
// undoes one of them, which is then made again.
func TestDeadlock(t *testing.T) {
	server := servers.MariaDB(t)
	database := server.Database(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	one, two := locktest.Begin("one"), locktest.Begin("two")
	locktest.MustApply(t, s, one, two)
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
	batch := []lock.Change{locktest.Settle(one), locktest.Settle(two)}
	told := applying(t, s, batch)
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
	locktest.MustApply(t, s, locktest.Begin("model"))
	waiting := raw(t, server.DSN(database))
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		t.Run("B32 "+end, func(t *testing.T) {
			c := locktest.Begin(end)
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
	locktest.Outage(t, opened(t, mysqllock.Options{URL: server.URL(database)}), server)
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
	locktest.MustApply(t, s, locktest.Begin("a"))

	t.Run("B56 a server that has become read-only", func(t *testing.T) {
		exec(t, admin, "SET GLOBAL read_only = ON")
		if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("b")}); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("a read-only server: %v", err)
		}
		exec(t, admin, "SET GLOBAL read_only = OFF")
		locktest.MustApply(t, s, locktest.Begin("b"))
	})
	t.Run("B56 1927 connections ended by the server", func(t *testing.T) {
		exec(t, admin, "KILL USER '"+user+"'@'%'")
		locktest.MustApply(t, s, locktest.Begin("c"))
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
	locktest.MustApply(t, s, locktest.Begin("a"))
	exec(t, admin, "SET PASSWORD FOR 'shop'@'%' = PASSWORD('zwei')")
	exec(t, admin, "KILL USER 'shop'@'%'")
	_, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("b")})
	if !errors.Is(err, lock.ErrUnavailable) || strings.Contains(err.Error(), "p@ss") {
		t.Fatalf("with the old password: %v", err)
	}
	password = "zwei"
	locktest.MustApply(t, s, locktest.Begin("b"))
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

// applying sends a batch, and tells when all of it is applied, or why it is not.
func applying(t *testing.T, s lock.Store, batch []lock.Change) <-chan error {
	told := make(chan error, 1)
	go func() {
		results, err := s.Apply(t.Context(), batch)
		for i := range results {
			if !results[i].Applied(batch[i]) {
				err = errors.Join(err, results[i].Err, errors.New("not applied"))
			}
		}
		told <- err
	}()
	return told
}
