package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// failsFirst is an app whose first reply is the given one; every later one is
// a plain 200.
func failsFirst(t *testing.T, first func(*harness.Request) harness.Reply) *harness.App {
	t.Helper()
	var failed atomic.Bool
	return harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		if failed.CompareAndSwap(false, true) {
			return first(r)
		}
		return harness.Reply{Body: []byte("done by attempt " + r.Header.Get("Oncegate-Attempt"))}
	})
}

// TestFailedAttempt fails an attempt in every way, and then delivers again, to
// the other replica. The event must not be burnt.
func TestFailedAttempt(t *testing.T) {
	event := harness.NewEvent(1)
	status := func(n int) func(*harness.Request) harness.Reply {
		return func(*harness.Request) harness.Reply { return harness.Reply{Status: n, Body: []byte("no")} }
	}

	for _, c := range []struct {
		name    string
		first   func(*harness.Request) harness.Reply
		status  int
		result  string
		seconds float64 // possible second runs that the other replica counts
	}{
		{"B27 500 is unknown, but over: the redelivery is a possible second run", status(500), 500, "failed", 1},
		{"B27 503 is released", status(503), 503, "failed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			app := failsFirst(t, c.first)
			a, b := pair(t, fieldLimits, route("wait: 5s"), app.URL)
			failed := deliver(t, a, event)
			if failed.Status != c.status || failed.Result() != c.result || string(failed.Body) != "no" {
				t.Errorf("the first was answered %v, want %d %s and the app's own body", failed, c.status, c.result)
			}
			again := deliver(t, b, event)
			accepted(t, again, "fresh")
			if again.Took > time.Second {
				t.Errorf("the redelivery waited: %v", again)
			}
			accepted(t, deliver(t, a, event), "replay")
			if hits := app.Hits(event.ID); hits != 2 {
				t.Errorf("the app ran %d times, want 2", hits)
			}
			if n := b.Metric(t, "oncegate_possible_second_runs_total"); n != c.seconds {
				t.Errorf("%v possible second runs were counted, want %v", n, c.seconds)
			}
		})
	}

	t.Run("B27 refused is released", func(t *testing.T) {
		t.Parallel()
		app := failsFirst(t, status(200))
		a, b := pair(t, fieldLimits, route("wait: 5s"), app.URL)
		app.Stop()
		notReached(t, deliver(t, a, event))
		app.Start(t)
		accepted(t, deliver(t, b, event), "fresh")
		accepted(t, deliver(t, a, event), "replay")
		if hits := app.Hits(event.ID); hits != 1 {
			t.Errorf("the app ran %d times, want 1", hits)
		}
	})

	for name, upstream := range map[string]func(addr string) string{
		"B27 a name that can't be resolved is released": func(string) string { return "http://shop.invalid:80" },
		"B27 a TLS handshake that fails is released":    func(addr string) string { return "https://" + addr },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := failsFirst(t, status(200))
			a, b := pair(t, fieldLimits, route("wait: 5s"), upstream(plainText(t)), good.URL)
			notReached(t, deliver(t, a, event))
			accepted(t, deliver(t, b, event), "fresh")
			accepted(t, deliver(t, b, event), "replay")
			if hits := good.Hits(event.ID); hits != 1 {
				t.Errorf("the app ran %d times, want 1", hits)
			}
		})
	}

	const appLimit = 4 * time.Second
	limits := fmt.Sprintf("lease: 2s\napp_limit: %v\nupstream_timeout: 1s\n", appLimit)
	for _, c := range []struct {
		name   string
		first  func(*harness.Request) harness.Reply
		status int
		result string
	}{
		{"B27 a timeout", func(r *harness.Request) harness.Reply { <-r.Gone; return harness.Reply{Close: true} }, 504, "unknown"},
		{"B27 a reset before the answer", func(*harness.Request) harness.Reply { return harness.Reply{Raw: []byte{}, Reset: true} }, 502, "unknown"},
		{"B27 a reset in the middle of the answer", func(*harness.Request) harness.Reply {
			return harness.Reply{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Reset: true}
		}, 502, "unknown"},
		{"B27 502", status(502), 502, "failed"},
		{"B27 504", status(504), 504, "failed"},
	} {
		t.Run(c.name+" is unknown, and not run again before the app limit has passed", func(t *testing.T) {
			t.Parallel()
			app := failsFirst(t, c.first)
			a, b := pair(t, limits, route("wait: 6s"), app.URL)
			failed := deliver(t, a, event)
			if failed.Status != c.status || failed.Result() != c.result {
				t.Errorf("the first was answered %v, want %d %s", failed, c.status, c.result)
			}
			again := deliver(t, b, event)
			accepted(t, again, "fresh")
			accepted(t, deliver(t, a, event), "replay")
			hits := app.Requests()
			if len(hits) != 2 {
				t.Fatalf("the app ran %d times, want 2", len(hits))
			}
			// The app's clock starts when it has read the request, a little
			// after oncegate's.
			if apart := hits[1].At.Sub(hits[0].At); apart < appLimit-200*time.Millisecond {
				t.Errorf("the app ran again %v after the attempt that may still be running, want %v", apart, appLimit)
			}
			if !bytes.Contains(again.Body, []byte("attempt 2")) {
				t.Errorf("%v, want attempt 2", again)
			}
		})
	}
}

// notReached wants the answer to a delivery that never got to the app.
func notReached(t *testing.T, a harness.Answer) {
	t.Helper()
	if a.Status != http.StatusBadGateway || a.Result() != "unreached" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%v, want 502 unreached with Retry-After", a)
	}
}

// plainText is a server that greets every connection with an error in plain
// text, whatever the other side says.
func plainText(t *testing.T) (addr string) {
	t.Helper()
	l := testenv.Listen(t, fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)))
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			_, _ = io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n\r\n")
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}
