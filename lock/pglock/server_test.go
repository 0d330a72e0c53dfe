package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// session is a connection apart from the store.
func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func exec(t *testing.T, c *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, o pglock.Options) *pglock.Store {
	t.Helper()
	s := open(t, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// blocked waits until a statement of the store waits for a lock.
func blocked(t *testing.T, c *pgx.Conn) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		var n int
		err := c.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits")
}

// B32: another session holds an insert of the key that is not committed. It
// commits, or rolls back: the begin that waits for it is told what stands, and
// never nothing.
func TestConflict(t *testing.T) {
	p := servers.Postgres(t)
	url := p.URL(p.Database(t))
	s := opened(t, pglock.Options{URL: url})
	locktest.MustApply(t, s, locktest.Begin("first"))
	other, look := session(t, url), session(t, url)
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		t.Run("B32 "+end, func(t *testing.T) {
			c := locktest.Begin(end)
			exec(t, other, "BEGIN")
			exec(t, other, `INSERT INTO oncegate_claims SELECT (r).* FROM (
				SELECT jsonb_populate_record(c, jsonb_build_object('digest', $1::text, 'version', $2::text)) AS r
				FROM oncegate_claims c LIMIT 1) one`, fmt.Sprintf(`\x%x`, c.Next.Digest[:]), `\x0123456789abcdef0123456789abcdef`)
			told := make(chan lock.Result)
			go func() {
				results, err := s.Apply(t.Context(), []lock.Change{c})
				if err != nil {
					results = []lock.Result{{Err: err}}
				}
				told <- results[0]
			}()
			blocked(t, look)
			exec(t, other, end)
			r := <-told
			if r.Err != nil || !r.Standing.Exists() || r.Applied(c) != (end == "ROLLBACK") {
				t.Fatalf("told %x, applied %v, %v", r.Standing.Version, r.Applied(c), r.Err)
			}
		})
	}
}

// B56: pooled connections lead to a server that has become read-only, or are
// ended by it. The work is done once more on a new one, and nobody notices.
func TestFailover(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	url := p.URL(database)
	s := opened(t, pglock.Options{URL: url})
	locktest.MustApply(t, s, locktest.Begin("first"))
	admin := session(t, url)
	endAll := func() {
		exec(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	for _, c := range []struct {
		name   string
		breaks func()
	}{
		{"B56 25006 connections that stayed on a read-only server", func() {
			exec(t, admin, "ALTER DATABASE "+database+" SET default_transaction_read_only = on")
			endAll()
			var wg sync.WaitGroup
			for range 4 { // fills the pool with read-only sessions
				wg.Go(func() { s.Read(t.Context(), []lock.Key{locktest.Begin("first").Next.Key}) })
			}
			wg.Wait()
			_, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("refused")})
			if !errors.Is(err, lock.ErrUnfit) {
				t.Fatalf("on a server that stays read-only: %v", err)
			}
			exec(t, admin, "ALTER DATABASE "+database+" RESET default_transaction_read_only")
		}},
		{"B56 57P01 connections ended by the server", endAll},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.breaks()
			var wg sync.WaitGroup
			for i := range 8 {
				e := locktest.Begin(fmt.Sprint(c.name, i))
				wg.Go(func() {
					results, err := s.Apply(t.Context(), []lock.Change{e})
					if err != nil || !results[0].Applied(e) {
						t.Errorf("apply: %v", err)
					}
				})
			}
			wg.Wait()
			if _, err := s.Read(t.Context(), []lock.Key{locktest.Begin("first").Next.Key}); err != nil {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// The server is away when the store is opened, comes, goes and comes again.
func TestOutage(t *testing.T) {
	p := testenv.Postgres(t)
	database := p.Database(t)
	t.Cleanup(func() { // the database is dropped after this
		if p.Pid() == 0 {
			p.Start(t)
		}
	})
	p.Stop(t)
	locktest.Outage(t, opened(t, pglock.Options{URL: p.URL(database)}), p)
}

// A settle changes no indexed column, and finds room in its page.
func TestSettlesAreHOT(t *testing.T) {
	p := servers.Postgres(t)
	url := p.URL(p.Database(t))
	s := opened(t, pglock.Options{URL: url})
	const events = 400
	var running []lock.Change
	for i := range events + 10 { // ten are under way at a time
		if i < events {
			e := locktest.Begin(fmt.Sprint("evt_1MqqbKLt4dXK03v5qaIbiNCC", i))
			locktest.MustApply(t, s, e)
			running = append(running, e)
		}
		if i >= 10 {
			e := locktest.Settle(running[0])
			e.Next.AnswerBody = []byte("Webhook Handled")
			locktest.MustApply(t, s, e)
			running = running[1:]
		}
	}
	s.Close() // its sessions report what they counted when they end
	c := session(t, url)
	var updates, hot int
	for start := time.Now(); updates < events && time.Since(start) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		err := c.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
			WHERE relname = 'oncegate_claims'`).Scan(&updates, &hot)
		if err != nil {
			t.Fatal(err)
		}
	}
	if updates != events || hot < events*98/100 {
		t.Errorf("%d of %d updates were HOT", hot, updates)
	}
}

// The password is asked for before each connection.
func TestPassword(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	p.Exec(t, database, "CREATE ROLE "+database+" LOGIN PASSWORD 'one'; GRANT CREATE ON DATABASE "+database+" TO "+database)
	t.Cleanup(func() { p.Exec(t, database, "DROP OWNED BY "+database+"; DROP ROLE "+database) })
	password := "one"
	s := opened(t, pglock.Options{
		URL:      strings.Replace(p.URL(database), "once:once@", database+"@", 1),
		Schema:   "own",
		Password: func(context.Context) (string, error) { return password, nil },
	})
	locktest.MustApply(t, s, locktest.Begin("a"))
	p.Exec(t, database, "ALTER ROLE "+database+" PASSWORD 'zwei'; "+
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+database+"'")
	_, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("b")})
	if !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("with the old password: %v", err)
	}
	if strings.Contains(err.Error(), "'one'") || strings.Contains(err.Error(), ":one@") {
		t.Errorf("the password is in %q", err)
	}
	password = "zwei"
	locktest.MustApply(t, s, locktest.Begin("b"))
}

func TestOptions(t *testing.T) {
	for _, o := range []pglock.Options{
		{URL: "postgres://user:s3cr%t@host/db"},
		{URL: "postgres://user:s3cret@host:port/db"},
		{URL: "host=h password=s3cret port=x"},
		{URL: "postgres://user:s3cret@host/db", Pool: 1},
	} {
		_, err := pglock.Open(o)
		if err == nil || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestLostReplies(t *testing.T) {
	p := servers.Postgres(t)
	url := p.URL(p.Database(t))
	server := fmt.Sprintf("127.0.0.1:%d", p.Port)
	proxy := locktest.NewProxy(t, server)
	locktest.LostReplies(t, opened(t, pglock.Options{URL: strings.Replace(url, server, proxy.Addr, 1)}), proxy)
}
