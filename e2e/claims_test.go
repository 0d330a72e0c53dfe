package e2e

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// fieldLimits are the limits that the cases from the field assume.
const fieldLimits = "lease: 2s\napp_limit: 0s\nupstream_timeout: 60s\nmax_body: 1MiB\n"

// route is the shop's route with further lines of its own.
func route(lines ...string) string {
	text := strings.TrimRight(harness.StripeRoute, "\n")
	for _, line := range lines {
		text += "\n    " + line
	}
	return text + "\n"
}

// pair starts two gates that share their claims. b's own upstream, if any, is
// the second.
func pair(t *testing.T, top, routes string, upstreams ...string) (a, b *harness.Gate) {
	t.Helper()
	dir := testenv.Dir(t)
	a = binary.Serve(t, harness.Config{Upstream: upstreams[0], Top: top, Routes: routes, StateDir: dir})
	b = binary.Serve(t, harness.Config{Upstream: upstreams[len(upstreams)-1], Top: top, Routes: routes, StateDir: dir})
	return a, b
}

// deliver sends one delivery of an event to a gate.
func deliver(t *testing.T, gate *harness.Gate, e harness.Event) harness.Answer {
	t.Helper()
	sender := harness.NewSender()
	defer sender.Close()
	return sender.Send(t.Context(), gate.URL+harness.WebhookPath, e.Delivery())
}

// inBackground delivers without waiting; the answer comes over the channel.
func inBackground(t *testing.T, gate *harness.Gate, e harness.Event) <-chan harness.Answer {
	t.Helper()
	answer := make(chan harness.Answer, 1)
	go func() { answer <- deliver(t, gate, e) }()
	return answer
}

// refused wants a 503 that a sender may retry, with one of the given words.
func refused(t *testing.T, a harness.Answer, words ...string) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("%v, want 503 with Retry-After", a)
	}
	for _, word := range words {
		if a.Result() == word {
			return
		}
	}
	t.Errorf("%v, want the result %v", a, words)
}

// accepted wants a 2xx with one of the given words.
func accepted(t *testing.T, a harness.Answer, words ...string) {
	t.Helper()
	if !a.OK() {
		t.Errorf("%v, want 2xx", a)
	}
	for _, word := range words {
		if a.Result() == word {
			return
		}
	}
	t.Errorf("%v, want the result %v", a, words)
}

// hangsOnce is an app that never answers its first delivery, and every later
// one at once. started is closed when the first has arrived.
func hangsOnce(t *testing.T) (app *harness.App, started chan struct{}) {
	t.Helper()
	started = make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		select {
		case <-first:
			close(started)
			<-r.Gone
			return harness.Reply{Close: true}
		default:
			return harness.Reply{Body: []byte("done by attempt " + r.Header.Get("Oncegate-Attempt"))}
		}
	}), started
}

func TestKilledInTheMiddle(t *testing.T) {
	event := harness.NewEvent(1)

	t.Run("B24 a waiting retry takes over when the lease lapses", func(t *testing.T) {
		t.Parallel()
		app, started := hangsOnce(t)
		a, b := pair(t, fieldLimits, route("wait: 5s"), app.URL)
		inBackground(t, a, event)
		<-started
		a.Kill(t)
		first := deliver(t, b, event)
		accepted(t, first, "fresh")
		if string(first.Body) != "done by attempt 2" {
			t.Errorf("%v, want attempt 2", first)
		}
		second := deliver(t, b, event)
		accepted(t, second, "replay")
		if !bytes.Equal(first.Body, second.Body) {
			t.Errorf("%v, then %v", first, second)
		}
		if hits := app.Hits(event.ID); hits != 2 {
			t.Errorf("the app ran %d times, want 2", hits)
		}
		if n := b.Metric(t, "oncegate_possible_second_runs_total"); n != 1 {
			t.Errorf("%v possible second runs were counted, want 1", n)
		}
	})

	t.Run("B24 wait below the lease", func(t *testing.T) {
		t.Parallel()
		app, started := hangsOnce(t)
		a, b := pair(t, fieldLimits, route("wait: 500ms"), app.URL)
		inBackground(t, a, event)
		<-started
		a.Kill(t)
		killed := time.Now()
		refused(t, deliver(t, b, event), "busy", "settling")
		time.Sleep(time.Until(killed.Add(2500 * time.Millisecond))) // lease + 0.5 s
		accepted(t, deliver(t, b, event), "fresh")
		if hits := app.Hits(event.ID); hits != 2 {
			t.Errorf("the app ran %d times, want 2", hits)
		}
	})

	t.Run("B24 hold", func(t *testing.T) {
		t.Parallel()
		app, started := hangsOnce(t)
		a, b := pair(t, fieldLimits, route("wait: 5s", "on_unknown: hold"), app.URL)
		inBackground(t, a, event)
		<-started
		a.Kill(t)
		refused(t, deliver(t, b, event), "held")
		refused(t, deliver(t, b, event), "held")
		if hits := app.Hits(event.ID); hits != 1 {
			t.Errorf("the app ran %d times, want 1", hits)
		}
	})
}

func TestLongWork(t *testing.T) {
	t.Parallel()
	t.Run("B25 work longer than the lease", func(t *testing.T) {
		event := harness.NewEvent(1)
		app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
			select {
			case <-time.After(9 * time.Second):
			case <-r.Gone:
			}
			return harness.Reply{Body: []byte("worked")}
		})
		a, b := pair(t, fieldLimits, route("wait: 5s"), app.URL)
		start := time.Now()
		owner := inBackground(t, a, event)
		var duplicates []<-chan harness.Answer
		for _, at := range []time.Duration{500 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
			time.Sleep(time.Until(start.Add(at)))
			duplicates = append(duplicates, inBackground(t, b, event))
		}
		refused(t, <-duplicates[0], "busy")
		refused(t, <-duplicates[1], "busy")
		accepted(t, <-duplicates[2], "waited")
		accepted(t, <-owner, "fresh")
		if hits := app.Hits(event.ID); hits != 1 {
			t.Errorf("the app ran %d times, want 1", hits)
		}
		if n := a.Metric(t, "oncegate_renewals_total"); n < 3 {
			t.Errorf("%v renewals in nine seconds with a lease of two", n)
		}
	})
}

func TestSenderHangsUp(t *testing.T) {
	t.Parallel()
	app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		select {
		case <-r.Gone:
			return harness.Reply{Close: true}
		case <-time.After(1500 * time.Millisecond):
			return harness.Reply{Body: []byte("done for " + r.Header.Get("Oncegate-Event"))}
		}
	})
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Top: fieldLimits, Routes: route("wait: 5s")})
	impatient := func(path string, d harness.Delivery) {
		sender := harness.NewSender()
		defer sender.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if a := sender.Send(ctx, gate.URL+path, d); a.Err == nil {
			t.Errorf("the app answered too early for this test: %v", a)
		}
	}

	t.Run("B34 a delivery goes on", func(t *testing.T) {
		event := harness.NewEvent(1)
		impatient(harness.WebhookPath, event.Delivery())
		first := deliver(t, gate, event)
		accepted(t, first, "waited")
		second := deliver(t, gate, event)
		accepted(t, second, "replay")
		if hits := app.Hits(event.ID); hits != 1 || !bytes.Equal(first.Body, second.Body) {
			t.Errorf("the app ran %d times; answers %v, then %v", hits, first, second)
		}
	})
	t.Run("B34 many times over", func(t *testing.T) {
		const events = 200
		sender := harness.NewSender()
		defer sender.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		work := deliveries(events, 1)
		sender.SendAll(ctx, gate.URL+harness.WebhookPath, work, events) // all of them hang up
		for i, a := range sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, work, 50) {
			if !a.OK() {
				t.Errorf("%s: %v", work[i].ID, a)
			}
		}
		for _, e := range work {
			if hits := app.Hits(e.ID); hits != 1 {
				t.Errorf("%s ran %d times", e.ID, hits)
			}
		}
		if n := gate.Metric(t, "oncegate_store_errors_total"); n != 0 {
			t.Errorf("%v round trips to the store failed", n)
		}
	})
	t.Run("B34 pass-through is cancelled", func(t *testing.T) {
		impatient("/elsewhere", harness.Delivery{Body: []byte("pass-through")})
		for _, r := range app.Requests() {
			if r.Target != "/elsewhere" {
				continue
			}
			select {
			case <-r.Gone:
			case <-time.After(time.Second):
				t.Error("the app still works for a client that has gone")
			}
		}
	})
}
