package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// echoSocket is an app that takes any upgrade and then sends back each line
// it gets. At the end of what it gets it says goodbye.
func echoSocket(t *testing.T) *harness.App {
	t.Helper()
	return harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		if r.Header.Get("Upgrade") == "" {
			return harness.Reply{Body: []byte("not upgraded")}
		}
		return harness.Reply{
			Status: http.StatusSwitchingProtocols,
			Header: []string{"Connection: Upgrade", "Upgrade: " + r.Header.Get("Upgrade"), "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
			Upgraded: func(in *bufio.Reader, c net.Conn) {
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						_, _ = io.WriteString(c, "goodbye\n") // to whoever still reads
						return
					}
					if _, err := io.WriteString(c, line); err != nil {
						return
					}
				}
			},
		}
	})
}

// upgrade asks for a protocol at a path, and returns the answer's status and
// the connection.
func upgrade(t *testing.T, gate *harness.Gate, path, protocol string, more ...string) (int, *bufio.Reader, *net.TCPConn) {
	t.Helper()
	conn, err := net.Dial("tcp", gate.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: shop.example", "Connection: Upgrade", "Upgrade: " + protocol,
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}, more...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", conn)
	}
	return response.StatusCode, in, tcp
}

// say sends a line and wants it back.
func say(t *testing.T, in *bufio.Reader, out io.Writer, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(out, line); err != nil {
		t.Fatal(err)
	}
	if got, err := in.ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("said %q, heard %q, %v", line, got, err)
	}
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	app := echoSocket(t)
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute,
		Top: "app_limit: 1s\nupstream_timeout: 1s\ndrain_timeout: 2s\n"})

	t.Run("B51 both ways, longer than any timeout of a request", func(t *testing.T) {
		status, in, conn := upgrade(t, gate, "/app/key", "websocket")
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("the upgrade was answered %d", status)
		}
		say(t, in, conn, "hello")
		time.Sleep(2500 * time.Millisecond) // idle past the timeouts above
		say(t, in, conn, strings.Repeat("still here ", 10_000))
	})
	t.Run("B51 half-close", func(t *testing.T) {
		_, in, conn := upgrade(t, gate, "/app/key", "websocket")
		say(t, in, conn, "hello")
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(in); string(rest) != "goodbye\n" || err != nil {
			t.Errorf("after the half-close the app's last words were %q, %v", rest, err)
		}
	})
	t.Run("B46 a route is never upgraded", func(t *testing.T) {
		if status, _, _ := upgrade(t, gate, harness.WebhookPath, "websocket"); status == http.StatusSwitchingProtocols {
			t.Error("the webhook's path was upgraded")
		}
	})
	t.Run("B46 other protocols are not tunnelled", func(t *testing.T) {
		for _, protocol := range []string{"h2c", "h2c, websocket", "TLS/1.0"} {
			status, _, _ := upgrade(t, gate, "/", protocol, "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")
			if status == http.StatusSwitchingProtocols {
				t.Errorf("an upgrade to %q was let through", protocol)
			}
		}
		for _, r := range app.Requests() {
			if strings.Contains(strings.ToLower(r.Header.Get("Upgrade")), "h2c") {
				t.Errorf("the app saw Upgrade: %s", r.Header.Get("Upgrade"))
			}
		}
	})
	t.Run("B51 a session does not hold up a shutdown past its deadline", func(t *testing.T) {
		_, in, conn := upgrade(t, gate, "/app/key", "websocket")
		say(t, in, conn, "hello")
		gate.Signal(t, syscall.SIGTERM)
		if code := gate.Wait(t, 8*time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if _, err := in.ReadByte(); err == nil {
			t.Error("the session is still open")
		}
	})
}
