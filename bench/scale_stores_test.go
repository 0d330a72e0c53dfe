package bench

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // filled and asked for sizes
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/mysqllock"
	"oncegate/lock/pglock"
	"oncegate/lock/redislock"
	"oncegate/lock/sqlitelock"
)

// A scaledStore is a kind of store that is filled, with at most so many claims.
// Servers are set up as for millions of claims, and otherwise as they come.
type scaledStore struct {
	name string
	most int
	open func(t *testing.T) *opened
}

func scaled() []scaledStore {
	var pg *testenv.PostgresServer
	var maria *testenv.MariaDBServer
	return []scaledStore{
		{"PostgreSQL", 100_000_000, func(t *testing.T) *opened {
			if pg == nil {
				pg = testenv.Postgres(t, "shared_buffers="+sized("2GB", "128MB"), "max_wal_size="+sized("8GB", "1GB"),
					"maintenance_work_mem="+sized("1GB", "64MB"))
			}
			return openPostgres(t, pg)
		}},
		{"MariaDB", 100_000_000, func(t *testing.T) *opened {
			if maria == nil {
				maria = testenv.MariaDB(t, "--innodb-buffer-pool-size="+sized("5G", "64M"), "--innodb-log-file-size="+sized("2G", "32M"))
			}
			return openMariaDB(t, maria)
		}},
		{"Redis", 100_000_000, openRedis},
		{"SQLite", 5_000_000, openSQLite},
	}
}

// sized is large, where many claims are asked for.
func sized(large, small string) string {
	if *scale > 100_000 {
		return large
	}
	return small
}

// An opened store is used as oncegate does, by its gate and its catalog, and
// otherwise behind oncegate's back.
type opened struct {
	store   lock.Store
	gate    *lock.Gate
	catalog lock.Catalog
	// expires says that the store removes what is past retention by itself.
	expires bool
	// size is the room that the claims take, in bytes.
	size func(t *testing.T) int64
	// fill makes n done claims of the one that is there, the older half of them
	// past retention, as if they had come evenly over twice the retention.
	fill func(t *testing.T, n int)
	// purge removes what is past retention.
	purge func(t *testing.T) removal
}

// keep has the store end with the test.
func keep[S interface {
	lock.Store
	lock.Catalog
}](t *testing.T, s S, err error) *opened {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	g := lock.NewGate(s, lock.Options{StoreTimeout: longTimeout})
	t.Cleanup(func() {
		if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &opened{store: s, gate: g, catalog: s}
	o.purge = func(t *testing.T) removal { return background(t, o) }
	return o
}

// wantFilled looks at some of those that are not past retention.
func (o *opened) wantFilled(t *testing.T, n int) {
	t.Helper()
	for i := n/2 + n/20 + 1; i < n; i += max(n/20, 1) { // a fill takes its time
		text := eventText("fill", i)
		got, err := o.store.Read(t.Context(), []lock.Key{lock.KeyOf(namespace, scope, text)})
		if err != nil {
			t.Fatal(err)
		}
		if r := got[0]; r.State != lock.StateDone || r.Text != text || r.AnswerStatus != 200 || r.Retain <= 0 {
			t.Fatalf("%s was filled in as %+v", text, r)
		}
	}
}

func openPostgres(t *testing.T, p *testenv.PostgresServer) *opened {
	url := p.URL(p.Database(t))
	s, err := pglock.Open(pglock.Options{URL: url})
	o := keep(t, s, err)
	db := database(t, "pgx", url)
	o.fill = func(t *testing.T, n int) { fillPostgres(t, db, n) }
	o.size = func(t *testing.T) (n int64) {
		ask(t, db, &n, "SELECT pg_total_relation_size('oncegate_claims')")
		return n
	}
	return o
}

func openMariaDB(t *testing.T, m *testenv.MariaDBServer) *opened {
	name := m.Database(t)
	s, err := mysqllock.Open(mysqllock.Options{URL: m.URL(name)})
	o := keep(t, s, err)
	db := database(t, "mysql", m.DSN(name))
	o.fill = func(t *testing.T, n int) { fillMariaDB(t, db, n) }
	o.size = func(t *testing.T) int64 {
		return fileSize(t, filepath.Join(m.Dir, "data", name, "oncegate_claims.ibd"))
	}
	return o
}

func openSQLite(t *testing.T) *opened {
	path := filepath.Join(t.TempDir(), "claims.db")
	o := keep(t, sqlitelock.Open(path, sqlitelock.Options{}), nil)
	o.fill = func(t *testing.T, n int) { fillSQLite(t, path, n) }
	o.size = func(t *testing.T) int64 { return fileSize(t, path) + fileSize(t, path+"-wal") }
	return o
}

// openRedis starts a server of its own, whose memory is that of its claims. It is
// not to rewrite its log while it is filled and measured.
func openRedis(t *testing.T) *opened {
	r := testenv.Redis(t, "auto-aof-rewrite-percentage 0")
	s, err := redislock.Open(redislock.Options{URL: r.URL})
	o := keep(t, s, err)
	o.expires = true
	c := redis.NewClient(&redis.Options{Addr: r.Addr, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	var due int
	o.fill = func(t *testing.T, n int) {
		fillRedis(t, c, n)
		due = n / 2
	}
	o.size = func(t *testing.T) int64 { return redisFigure(t, c, "used_memory") }
	o.purge = func(t *testing.T) removal { return expiry(t, c, due) }
	return o
}

// expiry is Redis's own, of so many claims. While it is let, as many are due in a
// second as oncegate removes from other stores at the most.
func expiry(t *testing.T, c *redis.Client, due int) removal {
	const perSecond = 1000
	before, next := redisFigure(t, c, "expired_keys"), 0
	return removal{
		resume: func() {
			now, p := time.Now(), c.Pipeline()
			for i := 0; i < int(perSecond*segment().Seconds()) && next < due; i++ {
				next++
				p.PExpireAt(t.Context(), redisKey(sha256.Sum256([]byte(eventText("fill", next)))), now.Add(time.Duration(i)*time.Second/perSecond))
			}
			if _, err := p.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		pause:   func() {}, // no more are due
		removed: func() int { return int(redisFigure(t, c, "expired_keys") - before) },
	}
}

func database(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func ask(t *testing.T, db *sql.DB, into any, text string) {
	t.Helper()
	if err := db.QueryRow(text).Scan(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func redisFigure(t *testing.T, c *redis.Client, name string) int64 {
	t.Helper()
	info, err := c.Info(t.Context(), "memory", "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if value, is := strings.CutPrefix(lines.Text(), name+":"); is {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal(fmt.Errorf("INFO says no %s", name))
	return 0
}
