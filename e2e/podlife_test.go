package e2e

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// Grace that is too short: the process is killed while it drains. What it had in
// hand is found lapsed by another pod, and run again.
func TestPodKilledAtDeadline(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	first := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { <-hang; return harness.Reply{} })
	t.Cleanup(func() { close(hang) })
	second := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	state := testenv.Dir(t)
	a := binary.Serve(t, harness.Config{Upstream: first.URL, Top: fieldLimits + "drain_timeout: 30s", Routes: route("wait: 5s"), StateDir: state})
	b := binary.Serve(t, harness.Config{Upstream: second.URL, Top: fieldLimits, Routes: route("wait: 5s"), StateDir: state})
	event := harness.NewEvent(1)
	broken := inBackground(t, a, event)
	for first.Hits(event.ID) == 0 {
		time.Sleep(5 * time.Millisecond)
	}

	t.Run("B67 SIGKILL at the deadline leaves a claim that recovers", func(t *testing.T) {
		a.Signal(t, syscall.SIGTERM)
		time.Sleep(200 * time.Millisecond)
		a.Kill(t)
		if got := <-broken; got.OK() {
			t.Errorf("the sender was told %v by a process that was killed", got)
		}
		accepted(t, deliver(t, b, event), "fresh")
		accepted(t, deliver(t, b, event), "replay")
		if hits := second.Requests(); len(hits) != 1 || hits[0].Header.Get("Oncegate-Attempt") != "2" {
			t.Errorf("the other pod's app saw %d requests", len(hits))
		}
	})
}

// A Job is complete when its native sidecar has ended after its own containers;
// connections that nobody uses don't hold it.
func TestJobCompletes(t *testing.T) {
	t.Parallel()
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Top: "drain_timeout: 2m"})
	sender := harness.NewSender() // whose connection stays open
	defer sender.Close()
	accepted(t, sender.Send(t.Context(), gate.URL+harness.WebhookPath, harness.NewEvent(1).Delivery()), "fresh")
	app.Stop()
	gate.Signal(t, syscall.SIGTERM)
	if code := gate.Wait(t, time.Minute); code != 0 {
		t.Errorf("exit code %d: the Job failed", code)
	}
}

// Containers of a pod come up in any order, and so does the database.
func TestPodStartsInAnyOrder(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	name := database.Database(t)
	database.Stop(t)
	port := testenv.Port(t)
	gate := binary.Serve(t, harness.Config{
		Upstream: fmt.Sprintf("http://127.0.0.1:%d", port), Routes: route("wait: 5s"),
		Top: fieldLimits + "namespace: pod\nstore: " + database.URL(name),
	})
	event := harness.NewEvent(1)
	page := func() int {
		response, err := http.Get(gate.URL + "/page")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}

	t.Run("B69 ready before the app and the store are", func(t *testing.T) {
		refused(t, deliver(t, gate, event), "unavailable")
		if got := page(); got != http.StatusBadGateway {
			t.Errorf("a page without an app: %d", got)
		}
	})
	app := harness.NewApp(t, port, func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	t.Run("B69 pages as soon as the app is there", func(t *testing.T) {
		if got := page(); got != http.StatusOK {
			t.Errorf("a page without a store: %d", got)
		}
		refused(t, deliver(t, gate, event), "unavailable")
	})
	app.Stop()
	database.Start(t)
	t.Run("the app slower than the store", func(t *testing.T) {
		until(t, "the store is found", func() bool {
			a := deliver(t, gate, event)
			return a.Status == http.StatusBadGateway && a.Result() == "unreached"
		})
	})
	app.Start(t)
	accepted(t, deliver(t, gate, event), "fresh")
	accepted(t, deliver(t, gate, event), "replay")
	if n := app.Hits(event.ID); n != 1 {
		t.Errorf("the app ran %d times", n)
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after 20 s: %s", what)
		}
	}
}
