package sqlevidence_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/internal/telemetry"
	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/mysqllock"
)

func TestMigrateAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, open opener) {
		t.Run("B60 ten replicas that start at once", func(t *testing.T) {
			var wg sync.WaitGroup
			begin := make(chan struct{})
			for range 10 {
				s := open(sqlevidence.Options{})
				wg.Go(func() {
					<-begin
					if err := s.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			close(begin)
			wg.Wait()
		})
	})
}

// Three replicas write storms, and write them anew, while two purge and one reads.
// Nothing is lost, and nothing counted twice.
func TestReplicasAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, open opener) {
		const replicas, rounds, each, old = 3, 8, 100, 2000
		now := time.Now()
		first := open(sqlevidence.Options{})
		var past []evidence.Entry
		for i := range old {
			past = append(past, entry(1_000_000+i, fmt.Sprint("evt_old", i), now.Add(-48*time.Hour)))
		}
		if err := first.Write(t.Context(), past); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		// As the Recorder does: what failed is written again.
		insist := func(doing string, do func() error) {
			var err error
			for range 20 {
				if err = do(); err == nil {
					return
				}
			}
			t.Errorf("%s: %v", doing, err)
		}
		for r := range replicas {
			s := open(sqlevidence.Options{})
			wg.Go(func() {
				for round := range rounds {
					var entries []evidence.Entry
					for i := range each {
						e := entry(r*each+i, "evt_storm", now)
						e.Count = 10 * (round + 1) // so far
						entries = append(entries, e)
					}
					insist("write", func() error { return s.Write(t.Context(), entries) })
				}
			})
		}
		removed := make([]int, 2)
		for p := range removed {
			s := open(sqlevidence.Options{})
			wg.Go(func() {
				for n := 1; n > 0; {
					insist("purge", func() (err error) {
						n, err = s.Purge(t.Context(), "shop", now.Add(-24*time.Hour), 100)
						removed[p] += n
						return err
					})
				}
			})
		}
		wg.Wait()
		for { // what two looked for at once, one of them removed
			n, err := first.Purge(t.Context(), "shop", now.Add(-24*time.Hour), 100)
			if err != nil {
				t.Fatal(err)
			}
			if removed[0] += n; n == 0 {
				break
			}
		}
		if removed[0]+removed[1] != old {
			t.Errorf("%d removed, want %d", removed[0]+removed[1], old)
		}
		figures, err := first.Figures(t.Context(), "shop", time.UnixMicro(0))
		if err != nil || len(figures) != 1 || figures[0].Deliveries != replicas*each*10*rounds {
			t.Errorf("%+v, %v; want %d deliveries", figures, err, replicas*each*10*rounds)
		}
	})
}

// A server that is stopped for a while costs no evidence: it is gathered, and
// written when the server is back.
func TestServerRestarts(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*testenv.Process, *sqlevidence.Store){
		"postgres": func(t *testing.T) (*testenv.Process, *sqlevidence.Store) {
			p := testenv.Postgres(t)
			return p.Process, must(t)(sqlevidence.Postgres(p.URL(p.Database(t)), "", sqlevidence.Options{}))
		},
		"postgres behind PgBouncer": func(t *testing.T) (*testenv.Process, *sqlevidence.Store) {
			p := servers.Postgres(t)
			b := testenv.PgBouncer(t, p, "default_pool_size = 2")
			return b.Process, must(t)(sqlevidence.Postgres(b.URL(p.Database(t)), "", sqlevidence.Options{}))
		},
		"mariadb": func(t *testing.T) (*testenv.Process, *sqlevidence.Store) {
			m := testenv.MariaDB(t)
			c, err := mysqllock.Connector(mysqllock.Options{URL: m.URL(m.Database(t))})
			return m.Process, must(t)(sqlevidence.MySQL(c, sqlevidence.Options{}), err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, s := start(t)
			r := evidence.NewRecorder(evidence.Options{Namespace: "shop", Store: s, Retention: time.Hour, Log: slog.New(slog.DiscardHandler)})
			record := func(n int) {
				for i := range n {
					r.Record(&telemetry.Outcome{
						Route: "stripe", Scope: "stripe", Key: fmt.Sprint("evt_", i%10), Result: telemetry.ResultReplay, Status: 200, Attempt: 1, Duplicate: true, At: time.Now(),
					})
				}
			}
			written := func() (n int) {
				figures, err := s.Figures(t.Context(), "shop", time.UnixMicro(0))
				if err != nil || len(figures) == 0 {
					return 0
				}
				return figures[0].Deliveries
			}
			await := func(n int) {
				t.Helper()
				for end := time.Now().Add(60 * time.Second); written() != n; time.Sleep(100 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%d deliveries are in evidence, want %d", written(), n)
					}
				}
			}
			record(100)
			await(100)
			server.Stop(t)
			record(500)
			if err := s.Write(t.Context(), []evidence.Entry{entry(1, "evt", time.Now())}); err == nil {
				t.Error("a server that is stopped has taken an entry")
			}
			server.Start(t)
			await(600)
			r.Close(context.Background())
			if r.Dropped() != 0 {
				t.Errorf("%d were dropped", r.Dropped())
			}
		})
	}
}

// A schema of its own, as store.schema names it, and a user that may not make tables.
func TestSchemaAndRights(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	p.Exec(t, database, `CREATE SCHEMA "Once"`)
	open := func(o sqlevidence.Options) *sqlevidence.Store {
		return must(t)(sqlevidence.Postgres(p.URL(database), "Once", o))
	}
	late := open(sqlevidence.Options{NoMigrate: true})
	e := entry(1, "evt_1", time.Now().UTC().Truncate(time.Microsecond))
	if err := late.Write(t.Context(), []evidence.Entry{e}); err == nil {
		t.Error("a table was made that nobody allowed")
	}
	if err := open(sqlevidence.Options{NoMigrate: true}).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := late.Write(t.Context(), []evidence.Entry{e}); err != nil {
		t.Errorf("after migrate: %v", err)
	}
	found, err := open(sqlevidence.Options{}).Find(t.Context(), evidence.Query{Namespace: "shop", Digest: lock.KeyOf("shop", "stripe", "evt_1").Digest, Limit: 1})
	if err != nil || len(found) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
}
