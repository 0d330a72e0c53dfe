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

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/pglock"
)

// Connections that PgBouncer keeps to the server, as docs/kubernetes.md says, and
// the least that a pod can have; it has one more where it hears of the others'
// claims.
const bouncerPool, podPool = 20, 2

// A fleet is the Gates of as many pods, on one database behind one PgBouncer.
type fleet struct {
	namespace string
	gates     []*lock.Gate
	figures   atomic.Int64 // how often one of them has taken figures
	runs      sync.Map     // event → how often it took effect
	waited    atomic.Int64
}

func newFleet(t *testing.T, pods int, url string) *fleet {
	t.Helper()
	f := &fleet{namespace: fmt.Sprintf("fleet-%d", pods)}
	for range pods {
		store, err := pglock.Open(pglock.Options{URL: url, Pool: podPool})
		if err != nil {
			t.Fatal(err)
		}
		gate := lock.NewGate(store, lock.Options{StoreTimeout: 10 * time.Second})
		work := lock.StartBackground(gate, store, lock.BackgroundOptions{
			Namespace: f.namespace, Lease: 6 * time.Second, FiguresEvery: time.Nanosecond,
			Figures: func(figures *lock.Figures) {
				if figures != nil {
					f.figures.Add(1)
				}
			},
		})
		t.Cleanup(func() {
			work.Close()
			if err := gate.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		f.gates = append(f.gates, gate)
	}
	return f
}

// deliver brings an event to a pod, and forwards and settles it where it is to.
func (f *fleet) deliver(ctx context.Context, gate *lock.Gate, event string) lock.Verdict {
	key := lock.KeyOf(f.namespace, "stripe", event)
	d := gate.Begin(ctx, &lock.Ask{
		Items:  []lock.Item{{Key: key, Text: event}},
		Policy: &lock.Policy{Lease: 30 * time.Second, Retention: time.Hour},
		Wait:   20 * time.Second,
	})
	if d.Waited {
		f.waited.Add(1)
	}
	if d.Verdict != lock.Run {
		return d.Verdict
	}
	if err := d.Attempt.Start(); err != nil {
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
	database := server.Database(t)
	db, err := sql.Open("pgx", server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, c := range []struct {
		name        string
		pods        int
		url         string
		connections int64 // to the server, at most
	}{
		{"10 pods without a pooler", 10, server.URL(database), 10 * (podPool + 1)},
		{"1 pod", 1, bouncer.URL(database), bouncerPool},
		{"20 pods", 20, bouncer.URL(database), bouncerPool},
		{"200 pods", 200, bouncer.URL(database), bouncerPool},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, c.pods, c.url)
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
			// A round every 2 s on one pod, whatever their number.
			if n, bound := f.figures.Load(), int64(time.Since(started)/(2*time.Second))+3; n > bound {
				t.Errorf("the background's work was done %d times, not at most %d", n, bound)
			}
		})
	}
}

// connect lets each pod see one event of its own, so that all are connected.
func (f *fleet) connect(t *testing.T) {
	var connecting sync.WaitGroup
	for i, gate := range f.gates {
		connecting.Go(func() {
			if v := f.deliver(t.Context(), gate, fmt.Sprint("first of pod ", i)); v != lock.Run {
				t.Errorf("the first of pod %d: verdict %d", i, v)
			}
		})
	}
	connecting.Wait()
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
				if v := f.deliver(t.Context(), f.gates[rand.IntN(len(f.gates))], event); v != lock.Run && v != lock.Replay {
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
