package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"oncegate/internal/testenv"
	"oncegate/lock/memlock"
)

// Straight before PHP-FPM, a delivery and a page see the same app: who sent, and
// what came.
func TestFastCGI(t *testing.T) {
	root := testenv.Dir(t)
	const script = `<?php echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['REQUEST_URI'], ' ', strlen(file_get_contents('php://input')), ' ', $_SERVER['HTTP_ONCEGATE_ATTEMPT'] ?? '-';`
	if err := os.WriteFile(root+"/index.php", []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	fpm := testenv.PHPFPM(t, testenv.Pool{Children: 2})
	r := startRig(t, "fcgi+unix:"+fpm.Socket+"?root="+root, memlock.New(), "namespace: shop\n"+acmeRoute(jsonID))

	// Any address of the loopback network is this machine's.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, addr)
	}}
	defer transport.CloseIdleConnections()
	for _, c := range []struct {
		name string
		req  *http.Request
		want string
	}{
		{"a delivery", r.acme(`{"id":"evt_1"}`), "127.0.0.2 /hooks/acme 14 1"},
		{"its duplicate", r.acme(`{"id":"evt_1"}`), "127.0.0.2 /hooks/acme 14 1"},
		{"what is on no route", r.post("/a%2Fb?x=1", "abc"), "127.0.0.2 /a%2Fb?x=1 3 -"},
	} {
		resp, err := transport.RoundTrip(c.req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != c.want {
			t.Errorf("%s: PHP says %q (%v), want %q", c.name, body, err, c.want)
		}
	}
}

// What must be read ahead, since PHP-FPM must be told its length, has its place
// among what may be in hand: half of it, so that it leaves room for deliveries.
func TestFastCGISpool(t *testing.T) {
	r := startRig(t, "fcgi://127.0.0.1:9?root=/app", newMem(), "namespace: shop\nmax_in_hand_bytes: 256KiB\n"+acmeRoute(jsonID+"\nmax_body: 64KiB\nmax_answer: 16KiB"))
	const head, piece = "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "8000\r\n"
	var slow []*wire
	for range 3 { // each takes 32 KiB, and as much again for what may follow
		c := r.dial()
		c.say(head + piece + strings.Repeat("x", 32<<10) + "\r\n1\r\nx\r\n")
		slow = append(slow, c)
		if len(slow) < 3 {
			eventually(t, func() bool { _, bytes := r.handler.InHand(); return bytes == int64(len(slow))*64<<10 })
		}
	}
	if s := slow[2].hear(t); s.status != 503 || s.result != "overload" || s.header.Get("Retry-After") == "" {
		t.Errorf("one more: got %d %q %v", s.status, s.result, s.err)
	}
	slow[0].Close()
	eventually(t, func() bool { _, bytes := r.handler.InHand(); return bytes == 64<<10 })
	slow[1].say("0\r\n\r\n")
	if s := slow[1].hear(t); s.status != 502 || s.result != "unreached" {
		t.Errorf("a whole one, and no app: got %d %q %v", s.status, s.result, s.err)
	}
}
