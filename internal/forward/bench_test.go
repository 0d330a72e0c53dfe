package forward_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// BenchmarkForward compares with http.Transport in one run: the same app, the
// same request, 1 and 32 at a time.
func BenchmarkForward(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"received":true}`)
	}))
	defer srv.Close()
	body := bytes.Repeat([]byte("x"), 2<<10)
	header := http.Header{"Content-Type": {"application/json"}, "Stripe-Signature": {"t=1,v1=0123456789abcdef"}, "User-Agent": {"Stripe/1.0"}}

	cl, err := forward.New(forward.Upstream{Scheme: "http", Address: srv.Listener.Addr().String()}, forward.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	ours := func() error {
		a, err := cl.Forward(b.Context(), &forward.Request{Method: "POST", Target: "/hook", Host: "shop", Header: header, Body: body})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, a.Body)
		return err
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 256, DialContext: (&net.Dialer{}).DialContext, DisableCompression: true, IdleConnTimeout: 4 * time.Second}
	defer tr.CloseIdleConnections()
	theirs := func() error {
		req, err := http.NewRequest("POST", srv.URL+"/hook", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header = header
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	for _, c := range []struct {
		name string
		send func() error
	}{{"forward/1", ours}, {"transport/1", theirs}, {"forward/32", ours}, {"transport/32", theirs}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			if c.name[len(c.name)-2:] == "32" {
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := c.send(); err != nil {
							b.Error(err)
							return
						}
					}
				})
				return
			}
			for b.Loop() {
				if err := c.send(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
