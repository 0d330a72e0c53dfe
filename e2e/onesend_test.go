package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// TestExactlyOneSend is the trap of Go's own transport: on a connection that
// was used before, it sends a request again that has an Idempotency-Key, when
// the app closes without an answer. The app here reads the whole request first,
// so whoever sends again runs it twice.
func TestExactlyOneSend(t *testing.T) {
	app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		if r.Header.Get("X-Warm") != "" || bytes.Contains(r.Body, []byte("evt_000000")) {
			return harness.Reply{Body: []byte("warm")}
		}
		return harness.Reply{Raw: []byte{}, Close: true}
	})
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Top: fieldLimits, Routes: route("wait: 1s")})
	sender := harness.NewSender()
	defer sender.Close()
	warm := func() {
		// Leaves a connection to the app open on each of the two ways.
		if a := sender.Send(t.Context(), gate.URL+"/warm", harness.Delivery{Header: http.Header{"X-Warm": {"1"}}, Body: []byte("x")}); !a.OK() {
			t.Fatal(a)
		}
		if a := deliver(t, gate, harness.NewEvent(0)); !a.OK() {
			t.Fatal(a)
		}
	}

	number := 0
	for _, key := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
		t.Run("B37 a delivery with "+name(key), func(t *testing.T) {
			warm()
			number++
			event := harness.NewEvent(number)
			d := event.Delivery()
			if key != "" {
				d.Header.Set(key, "k")
			}
			a := sender.Send(t.Context(), gate.URL+harness.WebhookPath, d)
			if a.Status != http.StatusBadGateway || a.Result() != "unknown" {
				t.Errorf("%v, want 502 unknown", a)
			}
			if hits := app.Hits(event.ID); hits != 1 {
				t.Errorf("the app got it %d times", hits)
			}
		})
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
			for _, body := range []string{"", "body"} {
				t.Run(fmt.Sprintf("B37 pass-through: %s %q with %s", method, body, name(key)), func(t *testing.T) {
					warm()
					number++
					target := fmt.Sprintf("/elsewhere/%d", number)
					lines := []string{method + " " + target + " HTTP/1.1", "Host: shop.example"}
					if key != "" {
						lines = append(lines, key+": k")
					}
					a := harness.SendRaw(gate.Addr(), lines, []byte(body))
					if a.Status != http.StatusBadGateway {
						t.Errorf("%v, want 502", a)
					}
					hits := 0
					for _, r := range app.Requests() {
						if r.Target == target {
							hits++
						}
					}
					if hits != 1 {
						t.Errorf("the app got it %d times", hits)
					}
				})
			}
		}
	}

	t.Run("B37 connections that the app closes when idle", func(t *testing.T) {
		const rounds = 40
		app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply {
			return harness.Reply{Body: []byte("ok"), CloseAfter: 50 * time.Millisecond}
		})
		gate := binary.Serve(t, harness.Config{Upstream: app.URL, Top: fieldLimits, Routes: route("wait: 1s")})
		for i := range rounds {
			event := harness.NewEvent(i)
			if a := deliver(t, gate, event); !a.OK() {
				t.Errorf("%v", a)
			}
			if hits := app.Hits(event.ID); hits != 1 {
				t.Errorf("the app got %s %d times", event.ID, hits)
			}
			time.Sleep(50*time.Millisecond - time.Duration(i%10)*100*time.Microsecond) // around the moment it closes
		}
	})
}

func name(key string) string {
	if key == "" {
		return "no key"
	}
	return key
}
