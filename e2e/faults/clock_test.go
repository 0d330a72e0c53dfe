package faults_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oncegate/e2e/faults"
	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// A clockRig is two gates on one store whose clock is set while they run, and an
// app that answers when it is told to. Nothing here hangs on how fast the
// machine is: limits are long, and pass by the store's clock alone.
type clockRig struct {
	t      *testing.T
	clock  faults.Clock
	gates  [2]*harness.Gate
	sender *harness.Sender
	app    *harness.App

	mu    sync.Mutex // guards holds
	holds map[string]chan struct{}
}

const (
	longLease = time.Minute
	longLimit = time.Hour
)

func newClockRig(t *testing.T, name string) *clockRig {
	r := &clockRig{t: t, sender: harness.NewSender(), holds: map[string]chan struct{}{}}
	t.Cleanup(r.sender.Close)
	over := make(chan struct{})
	r.app = harness.NewApp(t, testenv.Port(t), func(q *harness.Request) harness.Reply {
		key := q.Header.Get("Oncegate-Event") + " " + q.Header.Get("Oncegate-Attempt")
		select {
		case <-r.hold(key):
		case <-over:
		}
		return harness.Reply{Body: []byte("done " + key)}
	})
	t.Cleanup(func() { close(over) })
	store := faults.NewStore(t, name)
	r.clock = faults.Clock{Store: store, File: filepath.Join(testenv.Dir(t), "claims.db")}
	if store.Server != nil {
		r.move(-24 * time.Hour) // that it is not the gates' is no matter
	}
	for i := range r.gates {
		r.gates[i] = binary.Serve(t, harness.Config{
			Upstream: r.app.URL, Routes: harness.StripeRoute + "    wait: 5s\n", // what is owed is paid by then
			Top: fmt.Sprintf("namespace: clock\nstore: {url: %q}\nlease: %v\napp_limit: %v\nupstream_timeout: 10m\n",
				store.URL(r.clock.File), longLease, longLimit),
		})
	}
	return r
}

func (r *clockRig) hold(key string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds[key] == nil {
		r.holds[key] = make(chan struct{})
	}
	return r.holds[key]
}

// answer lets the app answer an attempt.
func (r *clockRig) answer(e harness.Event, attempt int) {
	close(r.hold(fmt.Sprintf("stripe:%s %d", e.ID, attempt)))
}

func (r *clockRig) move(by time.Duration) {
	r.t.Helper()
	if err := r.clock.Move(r.t.Context(), by); err != nil {
		r.t.Fatal(err)
	}
}

// send delivers to a gate.
func (r *clockRig) send(gate int, e harness.Event) harness.Answer {
	return r.sender.Send(r.t.Context(), r.gates[gate].URL+harness.WebhookPath, e.Delivery())
}

// begins delivers to a gate, and returns when the app has it: how the delivery is
// answered comes later.
func (r *clockRig) begins(gate int, e harness.Event, runs int) <-chan harness.Answer {
	r.t.Helper()
	answer := make(chan harness.Answer, 1)
	go func() { answer <- r.send(gate, e) }()
	for deadline := time.Now().Add(time.Minute); r.app.Hits(e.ID) < runs; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("the app never got attempt %d of %s", runs, e.ID)
		}
	}
	return answer
}

// is wants an answer with one of the words.
func (r *clockRig) is(a harness.Answer, words ...string) {
	r.t.Helper()
	for _, word := range words {
		if a.Result() == word {
			return
		}
	}
	r.t.Fatalf("answered %v, want %q", a, words)
}

func (r *clockRig) ran(e harness.Event, want int) {
	r.t.Helper()
	if n := r.app.Hits(e.ID); n != want {
		r.t.Errorf("the app ran %s %d times, want %d", e.ID, n, want)
	}
}

// TestStoreClock sets the store's clock while attempts are in hand. What a step
// takes away it takes from lease and app limit; what has gone by on both may be
// run again, announced and counted, and nothing else.
func TestStoreClock(t *testing.T) {
	for _, name := range []string{"sqlite", "postgres", "mariadb", "redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClockRig(t, name)

			// Past the lease, and not past the app limit: the claim is found lapsed,
			// nobody runs it, and its holder stays the holder.
			e := harness.NewEvent(1)
			first := r.begins(0, e, 1)
			r.gates[0].Pause(t)
			r.move(2 * longLease)
			r.is(r.send(1, e), "settling")
			r.gates[0].Resume(t)
			r.answer(e, 1)
			r.is(<-first, "fresh")
			r.is(r.send(1, e), "replay")
			r.ran(e, 1)

			// Past both: it is run again beside the first, as attempt 2, and counted.
			// The first is fenced, and its late answer replaces nothing.
			e = harness.NewEvent(2)
			first = r.begins(0, e, 1)
			r.gates[0].Pause(t)
			r.move(longLease + longLimit + time.Minute)
			second := r.begins(1, e, 2)
			r.gates[0].Resume(t)
			if n := r.gates[1].Metric(t, "oncegate_possible_second_runs_total"); n != 1 {
				t.Errorf("%v possible second runs are counted", n)
			}
			r.answer(e, 1)
			r.answer(e, 2)
			r.is(<-second, "fresh")
			r.is(<-first, "fresh", "replay", "waited")
			for gate := range r.gates {
				a := r.send(gate, e)
				r.is(a, "replay", "waited")
				if string(a.Body) != "done stripe:"+e.ID+" 2" {
					t.Errorf("gate %d answers %v", gate, a)
				}
			}
			r.ran(e, 2)

			// Back: what is done stays done, and what is lost is only found so later.
			e = harness.NewEvent(3)
			r.begins(0, e, 1)
			r.gates[0].Kill(t)
			r.move(-2 * time.Hour)
			r.is(r.send(1, harness.NewEvent(1)), "replay")
			r.is(r.send(1, e), "busy")
			r.ran(e, 1)
			r.move(2*time.Hour + longLease + longLimit + time.Minute)
			r.answer(e, 2)
			r.is(r.send(1, e), "fresh")
			r.ran(e, 2)
		})
	}
}

// TestOwnClock shows what a gate takes its own wall clock for, beside times that
// people read: to judge when a delivery was signed. To a gate whose clock is wrong
// by more than the tolerance every delivery is one of these. It refuses them, and
// remembers nothing of them; set right, it takes them. (Where the store is SQLite,
// it is the store's clock too.)
func TestOwnClock(t *testing.T) {
	r := newClockRig(t, "redis")
	e := harness.NewEvent(1)
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		d := e.DeliveryAt(time.Now().Add(off))
		r.is(r.sender.Send(context.Background(), r.gates[0].URL+harness.WebhookPath, d), "unverified")
	}
	r.ran(e, 0)
	r.answer(e, 1)
	r.is(r.send(0, e), "fresh")
	r.ran(e, 1)
}
