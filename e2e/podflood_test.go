package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// Thousands of connections, more than a container's memory has room for. Those
// that are idle between two requests make room; those that say nothing, or too
// little, are given up after a while. Meanwhile probes are answered, which nobody's
// connections keep from it, and pages too.
func TestPodConnectionFlood(t *testing.T) {
	t.Parallel()
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Env: []string{podMemLimit}})
	const flood, wave = 3000, 1500 // there is room for some 1300
	probed := func(t *testing.T) {
		t.Helper()
		for _, url := range []string{gate.Health + "/livez", gate.Health + "/readyz"} {
			if took := fastest(t, url); took > time.Second {
				t.Errorf("B69 %s took %v", url, took)
			}
		}
		fastest(t, gate.URL+"/page") // a place comes free, if only after a while
	}
	answered := func(t *testing.T) {
		t.Helper()
		probed(t)
		accepted(t, deliver(t, gate, harness.NewEvent(int(time.Now().UnixNano()%1e9))), "fresh")
	}

	t.Run("kept open after a page", func(t *testing.T) {
		var open []net.Conn
		for range flood {
			conn := dial(t, gate)
			fmt.Fprint(conn, "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n")
			page(t, bufio.NewReader(conn))
			open = append(open, conn)
		}
		answered(t)
		if _, err := open[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the one that was idle longest is still there: %v", err)
		}
	})
	t.Run("silent", func(t *testing.T) {
		idle(t, gate, wave, "")
		answered(t)
	})
	t.Run("with large heads that don't end", func(t *testing.T) {
		idle(t, gate, wave, "GET /page HTTP/1.1\r\nHost: shop\r\nCookie: "+strings.Repeat("c", 60000))
		answered(t)
	})
	t.Run("with bodies that don't end", func(t *testing.T) {
		idle(t, gate, wave, slowBody())
		until(t, "as many are in hand as may be", func() bool { return gate.Metric(t, "oncegate_in_hand") == 1024 })
		probed(t)
		refused(t, deliver(t, gate, harness.NewEvent(1)), "overload")
	})
	withinMemory(t, gate)
}

// HTTP/2 is not spoken, so its floods are not either: whoever begins with it, or
// asks for it, is answered in HTTP/1.1 and gets no further.
func TestPodHTTP2(t *testing.T) {
	t.Parallel()
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Env: []string{podMemLimit}})
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	// Streams that are opened and reset at once: HEADERS of a GET / (RFC 7541's
	// static table), then RST_STREAM.
	var resets bytes.Buffer
	for stream := uint32(1); stream < 20000; stream += 2 {
		id := []byte{byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}
		resets.WriteString("\x00\x00\x03\x01\x05")
		resets.Write(id)
		resets.WriteString("\x82\x84\x86\x00\x00\x04\x03\x00")
		resets.Write(id)
		resets.WriteString("\x00\x00\x00\x08")
	}
	for _, c := range []struct{ name, begin, want string }{
		{"by prior knowledge", preface + settings, "HTTP/1.1 4"},
		{"by an upgrade", "GET /page HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + preface + settings, "HTTP/1.1 200"},
	} {
		t.Run("B46 "+c.name, func(t *testing.T) {
			conn := dial(t, gate)
			fmt.Fprint(conn, c.begin)
			if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte(c.want)) || bytes.Contains(answer, []byte(" 101 ")) {
				t.Errorf("%.80q, %v", answer, err)
			}
			for range 50 {
				conn := dial(t, gate)
				// It is cut off while it writes.
				_, _ = io.WriteString(conn, c.begin)
				_, _ = conn.Write(resets.Bytes())
				_, _ = io.Copy(io.Discard, conn)
			}
		})
	}
	if n := len(app.Requests()); n > 51 {
		t.Errorf("the app got %d requests", n)
	}
	accepted(t, deliver(t, gate, harness.NewEvent(1)), "fresh")
	withinMemory(t, gate)
}

// slowBody begins a delivery that might be right.
func slowBody() string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nStripe-Signature: %s\r\nContent-Length: 5000000\r\n\r\n{",
		harness.WebhookPath, harness.NewEvent(1).Delivery().Header.Get("Stripe-Signature"))
}

func dial(t *testing.T, gate *harness.Gate) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", gate.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func page(t *testing.T, answers *bufio.Reader) {
	t.Helper()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", response.Status, err)
	}
}
