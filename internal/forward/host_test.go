package forward_test

import (
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"oncegate/internal/forward"
)

// TestNoHost: HTTP/1.0, which load balancers' probes still speak, names no host;
// HTTP/1.1 must.
func TestNoHost(t *testing.T) {
	overUnix, err := net.Listen("unix", filepath.Join(t.TempDir(), "app.sock"))
	if err != nil {
		t.Fatal(err)
	}
	tcp := startRaw(t, always(ok))
	for want, app := range map[string]*rawApp{
		"localhost": startRawOn(t, overUnix, always(ok)), tcp.Addr().String(): tcp,
	} {
		cl := client(t, app, forward.Options{})
		r := post("{}")
		r.Host = ""
		mustRead(t, cl, r)
		req := httptest.NewRequest("GET", "/", nil)
		req.Host = ""
		resp, err := cl.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for _, seen := range app.seen() {
			if !strings.Contains(seen, "\r\nHost: "+want+"\r\n") {
				t.Errorf("want the host %s:\n%s", want, seen)
			}
		}
	}
}
