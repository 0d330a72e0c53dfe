package e2e

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// blockStore takes the lock that SQLite gives to one at a time, and keeps it:
// the store neither answers nor refuses. The returned function lets it go.
func blockStore(t *testing.T, gate *harness.Gate) (release func()) {
	t.Helper()
	file := databaseFile(t, gate.StateDir)
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=exclusive&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// databaseFile finds the SQLite file in a state folder by its first bytes.
func databaseFile(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 15)
		_, err = io.ReadFull(f, head)
		f.Close()
		if err == nil && bytes.Equal(head, []byte("SQLite format 3")) {
			return path
		}
	}
	t.Fatalf("no SQLite file in %s: %v", dir, entries)
	return ""
}

func TestStoreOutage(t *testing.T) {
	t.Parallel()
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Top: fieldLimits, Routes: route("wait: 5s")})
	sender := harness.NewSender()
	defer sender.Close()
	event, warm := harness.NewEvent(1), harness.NewEvent(2)
	accepted(t, deliver(t, gate, warm), "fresh")

	release := blockStore(t, gate)
	t.Run("B36 deliveries are refused within the store timeout", func(t *testing.T) {
		for _, a := range sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, []harness.Event{event, event, event}, 3) {
			refused(t, a, "unavailable")
			if a.Took > 2500*time.Millisecond {
				t.Errorf("%v, with a store_timeout of 2 s", a)
			}
		}
		if hits := app.Hits(event.ID); hits != 0 {
			t.Errorf("the app ran %d times", hits)
		}
	})
	t.Run("B36 pass-through is not affected", func(t *testing.T) {
		start := time.Now()
		for range 100 {
			if a := sender.Send(t.Context(), gate.URL+"/elsewhere", harness.Delivery{Body: []byte("x")}); !a.OK() {
				t.Fatal(a)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("100 requests took %v", took)
		}
	})
	t.Run("B69 probes", func(t *testing.T) {
		probe(t, gate, "/livez", http.StatusOK)
		probe(t, gate, "/readyz", http.StatusOK)
	})
	release()
	t.Run("B36 after recovery", func(t *testing.T) {
		accepted(t, deliver(t, gate, event), "fresh")
		accepted(t, deliver(t, gate, event), "replay")
		if hits := app.Hits(event.ID); hits != 1 {
			t.Errorf("the app ran %d times, want 1", hits)
		}
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	t.Run("B69 the app is down", func(t *testing.T) {
		app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{} })
		gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute})
		app.Stop()
		notReached(t, deliver(t, gate, harness.NewEvent(1)))
		probe(t, gate, "/livez", http.StatusOK)
		probe(t, gate, "/readyz", http.StatusOK)
		app.Start(t)
		accepted(t, deliver(t, gate, harness.NewEvent(1)), "fresh")
		if n := app.Hits("livez") + len(app.Requests()); n != 1 {
			t.Errorf("the app saw %d requests, want the delivery and no probe", n)
		}
	})

	t.Run("B69 a thousand requests in flight, then shutdown", func(t *testing.T) {
		const inFlight = 1000
		release := make(chan struct{})
		app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
			if r.Target == "/slow" {
				select {
				case <-release:
				case <-r.Gone:
				}
			}
			return harness.Reply{Body: []byte("ok")}
		})
		gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Top: "drain_delay: 3s\ndrain_timeout: 10s\n"})
		sender := harness.NewSender()
		defer sender.Close()
		var slow sync.WaitGroup
		for range inFlight {
			slow.Go(func() {
				if a := sender.Send(t.Context(), gate.URL+"/slow", harness.Delivery{}); !a.OK() {
					t.Errorf("in flight at shutdown: %v", a)
				}
			})
		}
		waitFor(t, "all requests at the app", func() bool { return len(app.Requests()) == inFlight })

		var took []time.Duration
		for range 21 {
			took = append(took, probe(t, gate, "/livez", http.StatusOK), probe(t, gate, "/readyz", http.StatusOK))
		}
		slices.Sort(took)
		if median := took[len(took)/2]; median > 100*time.Millisecond {
			t.Errorf("half of the probes took more than %v", median)
		}

		gate.Signal(t, syscall.SIGTERM)
		waitFor(t, "readiness to be taken back", func() bool {
			status, _ := ask(gate, "/readyz")
			return status == http.StatusServiceUnavailable
		})
		probe(t, gate, "/livez", http.StatusOK)
		accepted(t, deliver(t, gate, harness.NewEvent(1)), "fresh") // over a new connection
		close(release)
		slow.Wait()
		if code := gate.Wait(t, 15*time.Second); code != 0 {
			t.Errorf("exit code %d after a clean stop", code)
		}
	})
}

// probe asks the health listener and returns how long the answer took.
func probe(t *testing.T, gate *harness.Gate, path string, want int) time.Duration {
	t.Helper()
	start := time.Now()
	if status, err := ask(gate, path); status != want {
		t.Errorf("%s was answered %d (%v), want %d", path, status, err, want)
	}
	return time.Since(start)
}

func ask(gate *harness.Gate, path string) (status int, err error) {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(gate.Health + path)
	if err != nil {
		return 0, fmt.Errorf("health: %w", err)
	}
	return response.StatusCode, response.Body.Close()
}

// waitFor polls until something outside this process has happened.
func waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
