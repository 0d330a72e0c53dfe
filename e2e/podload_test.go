package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// What deploy/k8s/sidecar gives the container, and what the collector is set to
// for that.
const (
	podMemory   = 256 << 20
	podMemLimit = "GOMEMLIMIT=241591910" // nine tenths
)

// Far more than the default limits let in, from every side at once: large
// deliveries, senders that dribble large heads and bodies, connections that say
// nothing. The process stays within its container's memory, and what is not refused
// works.
func TestPodBeyondLimits(t *testing.T) {
	open := make(chan struct{})
	app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		if r.Method == http.MethodPost {
			<-open
		}
		return harness.Reply{Body: []byte("done")}
	})
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Top: "store_timeout: 10s", Env: []string{podMemLimit}})

	idle(t, gate, 300, "")
	idle(t, gate, 300, "POST "+harness.WebhookPath+" HTTP/1.1\r\nHost: shop\r\nCookie: "+strings.Repeat("c", 60000))
	idle(t, gate, 100, slowBody())
	answers := flood(t, gate, 250)

	t.Run("what is too much is refused, and the rest waits for the app", func(t *testing.T) {
		// Of 250 MiB about a fifth fits into the 64 MiB that may be in hand.
		for range 150 {
			refused(t, <-answers, "overload")
		}
	})
	t.Run("B69 probes and pages are answered meanwhile", func(t *testing.T) {
		for _, url := range []string{gate.Health + "/livez", gate.Health + "/readyz", gate.URL + "/page"} {
			if took := fastest(t, url); took > time.Second {
				t.Errorf("%s took %v", url, took)
			}
		}
	})
	close(open)
	fresh := 0
	for a := range answers {
		if a.Result() == "fresh" {
			fresh++
		}
	}
	if fresh < 10 {
		t.Errorf("only %d deliveries got through", fresh)
	}
	accepted(t, deliver(t, gate, harness.NewEvent(1)), "fresh")
	withinMemory(t, gate)
}

// Where the sender never comes again, what is too much goes to the app unclaimed,
// as it comes, and takes no room.
func TestPodBeyondLimitsForwards(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		<-open
		return harness.Reply{Body: []byte("done")}
	})
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: route("retries_for: 0s"), Top: "store_timeout: 10s", Env: []string{podMemLimit}})
	const deliveries = 200
	answers := flood(t, gate, deliveries)
	until(t, "the app has them all", func() bool { return len(app.Requests()) == deliveries })
	close(open)
	results := map[string]int{}
	for a := range answers {
		if !a.OK() {
			t.Errorf("not forwarded: %v", a)
		}
		results[a.Result()]++
	}
	if results["fresh"] < 10 || results["unclaimed"] < 100 || len(results) != 2 {
		t.Errorf("results %v", results)
	}
	withinMemory(t, gate)
}

// withinMemory wants the process never to have had more than its container has.
func withinMemory(t *testing.T, gate *harness.Gate) {
	t.Helper()
	most := highWater(t, gate.Pid())
	t.Logf("at most %d MiB of memory", most>>20)
	if most > podMemory {
		t.Error("more than a container has")
	}
}

// idle opens connections that begin so and then say nothing, until the test ends.
func idle(t *testing.T, gate *harness.Gate, n int, begin string) {
	t.Helper()
	for range n {
		conn, err := net.Dial("tcp", gate.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, begin); err != nil {
			t.Fatal(err)
		}
	}
}

// flood delivers n events of 1 MiB each at once. The answers come in the order in
// which they were given.
func flood(t *testing.T, gate *harness.Gate, n int) <-chan harness.Answer {
	t.Helper()
	answers := make(chan harness.Answer, n)
	var sending sync.WaitGroup
	sender := harness.NewSender()
	for i := range n {
		sending.Go(func() {
			event := harness.NewEvent(1000 + i)
			event.Body = append(bytes.TrimSuffix(event.Body, []byte("}")), `, "padding": "`+strings.Repeat("x", 1<<20)+`"}`...)
			answers <- sender.Send(t.Context(), gate.URL+harness.WebhookPath, event.Delivery())
		})
	}
	go func() {
		sending.Wait()
		sender.Close()
		close(answers)
	}()
	return answers
}

// fastest asks five times, since the machine may be busy with other tests.
func fastest(t *testing.T, url string) time.Duration {
	t.Helper()
	best := time.Hour
	for range 5 {
		began := time.Now()
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, response.Status)
		}
		best = min(best, time.Since(began))
	}
	return best
}

// highWater returns the most memory that a process has had, in bytes, without the
// pages of its own program, which the kernel takes back when it needs them.
func highWater(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kib := func(name string) int64 {
		_, rest, _ := strings.Cut(string(text), "\n"+name+":")
		var n int64
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatalf("no %s: %v", name, err)
		}
		return n
	}
	return (kib("VmHWM") - kib("RssFile")) << 10
}
