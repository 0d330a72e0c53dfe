package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/pglock"
)

// Connections that PgBouncer keeps to the server, as docs/kubernetes.md says, and
// the least that a pod can have; it has one more where it hears of the others'
// claims.
const bouncerPool, podPool = 20, 2

// So many pods start at a time: those of a rollout come one after the other, each
// with a processor of its own, and these have two among them.
const starting = 20

// A fleet is as many pods, on one database behind one PgBouncer.
type fleet struct {
	namespace string
	pods      []*pod
	figures   atomic.Int64 // how often one of them has taken figures
	runs      sync.Map     // event → how often it took effect
	waited    atomic.Int64
}

type pod struct {
	gate  *lock.Gate
	work  *lock.Background
	store *pglock.Store
}

func newFleet(t *testing.T, pods int, url string) *fleet {
	t.Helper()
	f := &fleet{namespace: fmt.Sprintf("fleet-%d", pods)}
	for range pods {
		store, err := pglock.Open(pglock.Options{URL: url, Pool: podPool})
		if err != nil {
			t.Fatal(err)
		}
		gate := lock.NewGate(store, lock.Options{StoreTimeout: 30 * time.Second})
		work := lock.StartBackground(gate, store, lock.BackgroundOptions{
			Namespace: f.namespace, Lease: 6 * time.Second, FiguresEvery: time.Nanosecond,
			Figures: func(figures *lock.Figures) {
				if figures != nil {
					f.figures.Add(1)
				}
			},
		})
		f.pods = append(f.pods, &pod{gate: gate, work: work, store: store})
	}
	t.Cleanup(func() { f.close(t) })
	return f
}

// close stops the pods as a cluster does: together, each within its grace period.
func (f *fleet) close(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f.each(len(f.pods), func(i int, p *pod) {
		p.work.Close()
		if err := p.gate.Close(ctx); err != nil {
			t.Errorf("pod %d: %v", i, err)
		}
		if err := p.store.Close(); err != nil {
			t.Errorf("pod %d: %v", i, err)
		}
	})
}

// each does something with every pod, with so many at a time.
func (f *fleet) each(width int, do func(i int, p *pod)) {
	var doing errgroup.Group
	doing.SetLimit(width)
	for i, p := range f.pods {
		doing.Go(func() error { do(i, p); return nil })
	}
	_ = doing.Wait() // none fails
}

// deliver brings an event to a pod, and forwards and settles it where it is to.
func (f *fleet) deliver(t *testing.T, gate *lock.Gate, event string) lock.Verdict {
	key := lock.KeyOf(f.namespace, "stripe", event)
	d := gate.Begin(t.Context(), &lock.Ask{
		Items:  []lock.Item{{Key: key, Text: event}},
		Policy: &lock.Policy{Lease: 30 * time.Second, Retention: time.Hour},
		Wait:   20 * time.Second,
	})
	if d.Waited {
		f.waited.Add(1)
	}
	if d.Err != nil {
		t.Errorf("%s: %v", event, d.Err)
	}
	if d.Verdict != lock.Run {
		return d.Verdict
	}
	if err := d.Attempt.Start(); err != nil {
		t.Errorf("%s: %v", event, err)
		return lock.Busy
	}
	n, _ := f.runs.LoadOrStore(event, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	time.Sleep(5 * time.Millisecond) // the app's work
	d.Attempt.Settle(lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: &lock.Answer{Status: 200}})
	return d.Verdict
}

// As pods grow from 1 to 200, the server has as many connections as before, one
// pod does the background's work, and what is claimed is claimed once.
func TestFleetOnOnePostgres(t *testing.T) {
	server := testenv.Postgres(t)
	bouncer := testenv.PgBouncer(t, server, fmt.Sprintf("default_pool_size = %d", bouncerPool), "max_client_conn = 2000")
	for _, c := range []struct {
		name        string
		pods        int
		url         func(database string) string
		connections int64 // to the server, at most
	}{
		{"10 pods without a pooler", 10, server.URL, 10 * (podPool + 1)},
		{"1 pod", 1, bouncer.URL, bouncerPool},
		{"20 pods", 20, bouncer.URL, bouncerPool},
		{"200 pods", 200, bouncer.URL, bouncerPool},
	} {
		t.Run(c.name, func(t *testing.T) {
			database := server.Database(t)
			db, err := sql.Open("pgx", server.URL(database))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			f := newFleet(t, c.pods, c.url(database))
			most := watchConnections(t, db)
			started := time.Now()
			f.connect(t)
			const events, copies, width = 400, 3, 64
			began := time.Now()
			f.deliverAll(t, events, copies, width)
			took := time.Since(began)
			t.Logf("%d deliveries in %v (%.0f a second), %d waited, %d connections", events*copies, took.Round(time.Millisecond),
				events*copies/took.Seconds(), f.waited.Load(), most())
			ran := 0
			f.runs.Range(func(event, n any) bool {
				ran++
				if n := n.(*atomic.Int64).Load(); n != 1 {
					t.Errorf("%v took effect %d times", event, n)
				}
				return true
			})
			if ran != events+c.pods {
				t.Errorf("%d of %d events took effect", ran, events+c.pods)
			}
			if n := most(); n > c.connections {
				t.Errorf("the server had %d connections", n)
			}
			// A round every 1 to 2 s on one pod, whatever their number.
			if n, bound := f.figures.Load(), int64(time.Since(started)/time.Second)+3; n > bound {
				t.Errorf("the background's work was done %d times, not at most %d", n, bound)
			}
		})
	}
}

// connect lets each pod see one event of its own, so that all are connected.
func (f *fleet) connect(t *testing.T) {
	f.each(starting, func(i int, p *pod) {
		if v := f.deliver(t, p.gate, fmt.Sprint("first of pod ", i)); v != lock.Run {
			t.Errorf("the first of pod %d: verdict %d", i, v)
		}
	})
}

// What docs/kubernetes.md reckons with for one pod, as its command runs.
func TestPodConnections(t *testing.T) {
	const atMost = 4 + 1 + 2 // for claims, for notifications, for evidence
	server := servers.Postgres(t)
	database := server.Database(t)
	db, err := sql.Open("pgx", server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Top: "namespace: pod\nstore: " + server.URL(database)})
	most := watchConnections(t, db)
	sender := harness.NewSender()
	defer sender.Close()
	for _, a := range sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, deliveries(150, 2), 60) {
		accepted(t, a, "fresh", "replay", "waited")
	}
	if n := most(); n > atMost || n < 2 {
		t.Errorf("the server had %d connections", n)
	}
}

// deliverAll delivers each event several times, the copies close to each other.
func (f *fleet) deliverAll(t *testing.T, events, copies, width int) {
	work := make(chan string)
	var delivering sync.WaitGroup
	for range width {
		delivering.Go(func() {
			for event := range work {
				if v := f.deliver(t, f.pods[rand.IntN(len(f.pods))].gate, event); v != lock.Run && v != lock.Replay {
					t.Errorf("%s: verdict %d", event, v)
				}
			}
		})
	}
	for i := range events {
		for range copies {
			work <- fmt.Sprintf("evt_%d", i)
		}
	}
	close(work)
	delivering.Wait()
}

// watchConnections counts the server's connections to the database, but for the
// one that counts, until the test ends. The returned function says how many there
// were at most.
func watchConnections(t *testing.T, db *sql.DB) (most func() int64) {
	t.Helper()
	var highest atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			var n int64
			err := db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			highest.Store(max(highest.Load(), n))
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		stop()
		watching.Wait()
	})
	return highest.Load
}
