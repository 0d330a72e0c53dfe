package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
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
