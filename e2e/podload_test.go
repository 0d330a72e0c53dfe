package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
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
// deliveries, senders that dribble heads and bodies, connections that say
// nothing, HTTP/2 that nobody speaks. The process stays within its container's
// memory, and what is not refused works.
func TestPodBeyondLimits(t *testing.T) {
	open := make(chan struct{})
	app := harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		if r.Method == http.MethodPost {
			<-open
		}
		return harness.Reply{Body: []byte("done")}
	})
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Env: []string{podMemLimit}})

	idle(t, gate, 300, "")
	idle(t, gate, 100, "POST "+harness.WebhookPath+" HTTP/1.1\r\nHost: shop\r\nStripe-Sig")
	idle(t, gate, 100, "POST "+harness.WebhookPath+" HTTP/1.1\r\nHost: shop\r\nStripe-Signature: t=1,v1=00\r\nContent-Length: 5000000\r\n\r\n{")
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
	t.Run("HTTP/2 is not spoken, so its floods are not either", func(t *testing.T) {
		conn, err := net.Dial("tcp", gate.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		answer, err := io.ReadAll(conn)
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 ")) {
			t.Errorf("%.40q, %v", answer, err)
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

// highWater returns the most memory that a process has had.
func highWater(t *testing.T, pid int) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
