package health

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// start serves on a free port; stop waits until Serve has returned.
func start(t *testing.T, store func() StoreState) (s *Server, url string, stop func()) {
	t.Helper()
	s = New(Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, err := io.WriteString(w, "oncegate_in_hand 1000\n"); err != nil {
				t.Error(err)
			}
		}),
		Store: store, Version: "1.2.3", Log: slog.New(slog.DiscardHandler),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	stop = sync.OnceFunc(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return s, "http://" + l.Addr().String(), stop
}

func get(t *testing.T, method, url string) (int, string) {
	t.Helper()
	q, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestPhases(t *testing.T) {
	s, url, _ := start(t, func() StoreState { return StoreUnasked })
	check := func(want int, status string) {
		t.Helper()
		code, body := get(t, "GET", url+"/readyz")
		var said map[string]string
		if err := json.Unmarshal([]byte(body), &said); err != nil {
			t.Fatal(err)
		}
		if code != want || said["status"] != status || said["store"] != "unasked" || said["version"] != "1.2.3" {
			t.Errorf("readyz: %d %s", code, body)
		}
		if code, body := get(t, "GET", url+"/livez"); code != 200 || !strings.Contains(body, `"live"`) {
			t.Errorf("livez: %d %s", code, body)
		}
	}
	check(503, "starting")
	s.Ready()
	check(200, "ready")
	s.Drain()
	t.Run("B69 not ready after SIGTERM, and alive", func(t *testing.T) {
		check(503, "draining")
		s.Ready()
		check(503, "draining")
	})
}

func TestStoreOutage(t *testing.T) {
	var state atomic.Value
	state.Store(StoreUnreachable)
	s, url, _ := start(t, func() StoreState { return state.Load().(StoreState) })
	s.Ready()
	t.Run("B69 a store outage changes a field and no status", func(t *testing.T) {
		code, body := get(t, "GET", url+"/readyz")
		if code != 200 || !strings.Contains(body, `"store":"unreachable"`) {
			t.Errorf("%d %s", code, body)
		}
		if code, _ := get(t, "GET", url+"/livez"); code != 200 {
			t.Errorf("livez: %d", code)
		}
		state.Store(StoreReachable)
		if _, body := get(t, "GET", url+"/readyz"); !strings.Contains(body, `"store":"reachable"`) {
			t.Errorf("%s", body)
		}
	})
}

func TestNothingElse(t *testing.T) {
	_, url, _ := start(t, func() StoreState { return StoreReachable })
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/metrics", 200}, {"HEAD", "/livez", 200}, {"POST", "/livez", 405}, {"PUT", "/metrics", 405},
		{"GET", "/", 404}, {"GET", "/livez/x", 404}, {"GET", "/stripe/webhook", 404}, {"GET", "/debug/pprof/", 404},
	} {
		if code, _ := get(t, c.method, url+c.path); code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, code, c.want)
		}
	}
}

func TestProbesUnderLoad(t *testing.T) {
	const n = 1000
	release := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(n)
	busy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		<-release
	}))
	defer busy.Close()
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			r, err := busy.Client().Get(busy.URL)
			if err != nil {
				t.Error(err)
				return
			}
			r.Body.Close()
		})
	}
	defer done.Wait()
	defer close(release)
	arrived.Wait()
	s, url, _ := start(t, func() StoreState { return StoreReachable })
	s.Ready()
	t.Run("B69 probes are answered while 1000 requests are in flight", func(t *testing.T) {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			// The fastest of five, for the machine may be busy with other tests.
			fastest := time.Hour
			for range 5 {
				began := time.Now()
				if code, _ := get(t, "GET", url+path); code != 200 {
					t.Errorf("%s: %d", path, code)
				}
				fastest = min(fastest, time.Since(began))
			}
			if fastest > 100*time.Millisecond {
				t.Errorf("%s took %v", path, fastest)
			}
		}
	})
}

func TestShutdownEndsServe(t *testing.T) {
	_, url, stop := start(t, func() StoreState { return StoreReachable })
	stop()
	if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		c.Close()
		t.Error("still listens")
	}
}
