package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// BenchmarkPass compares passing through with a bare, tuned ReverseProxy on
// http.Transport, in one run.
func BenchmarkPass(b *testing.B) {
	var conns atomic.Int64
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Repeat("y", 2<<10))
	}))
	app.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	app.Start()
	defer app.Close()
	up, err := forward.New(forward.Upstream{Scheme: "http", Address: app.Listener.Addr().String(), IdleTimeout: time.Minute}, forward.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer up.Close()
	target, err := url.Parse(app.URL)
	if err != nil {
		b.Fatal(err)
	}
	bare := &httputil.ReverseProxy{
		Rewrite:    func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: new(copyBuffers),
	}
	for _, h := range []struct {
		name    string
		handler http.Handler
	}{{"oncegate", newPass(up, nil)}, {"bare", bare}} {
		for _, method := range []string{"GET", "POST"} {
			for _, parallel := range []int{1, 32} {
				b.Run(h.name+"/"+method+"/"+map[int]string{1: "1", 32: "32"}[parallel], func(b *testing.B) {
					front := httptest.NewServer(h.handler)
					defer front.Close()
					tr := &http.Transport{MaxIdleConnsPerHost: 64}
					defer tr.CloseIdleConnections()
					before := conns.Load()
					b.SetParallelism(max(1, parallel/2))
					send := func() error {
						var body io.Reader
						if method == "POST" {
							body = strings.NewReader(strings.Repeat("x", 2<<10))
						}
						req, err := http.NewRequest(method, front.URL, body)
						if err != nil {
							return err
						}
						resp, err := tr.RoundTrip(req)
						if err != nil {
							return err
						}
						defer resp.Body.Close()
						_, err = io.Copy(io.Discard, resp.Body)
						return err
					}
					b.ReportAllocs()
					if parallel == 1 {
						for b.Loop() {
							if err := send(); err != nil {
								b.Fatal(err)
							}
						}
					} else {
						b.RunParallel(func(pb *testing.PB) {
							for pb.Next() {
								if err := send(); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					b.ReportMetric(float64(conns.Load()-before), "conns")
				})
			}
		}
	}
}
