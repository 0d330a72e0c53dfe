package proxy_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/telemetry"
	"oncegate/lock"
	"oncegate/lock/memlock"
	"oncegate/proxy"
)

// An app records what reaches it and answers as it is told.
type app struct {
	*httptest.Server
	mu      sync.Mutex
	hits    []hit
	handler http.HandlerFunc // nil: 200 with a body of its own
}

// A hit is one request as the app saw it.
type hit struct {
	method, target, host string
	header               http.Header
	length               int64
	body                 []byte
}

func newApp(t *testing.T) *app {
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the app can't read the body: %v", err)
		}
		a.mu.Lock()
		a.hits = append(a.hits, hit{r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, body})
		n, handler := len(a.hits), a.handler
		a.mu.Unlock()
		if handler != nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			handler(w, r)
			return
		}
		fmt.Fprintf(w, "answer %d", n)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *app) answer(f http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handler = f
}

func (a *app) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.hits)
}

func (a *app) last() hit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hits[len(a.hits)-1]
}

const secret = "whsec_test_of_the_proxy"

// A rig is oncegate in front of an app.
type rig struct {
	t     *testing.T
	app   *app
	store *memlock.Store
	gate  *lock.Gate
	front *httptest.Server
}

// newRig starts a rig. The YAML holds top-level settings and routes; upstream
// and namespace are added.
func newRig(t *testing.T, a *app, store *memlock.Store, yaml string) *rig {
	t.Helper()
	r := &rig{t: t, app: a, store: store}
	path := filepath.Join(t.TempDir(), "oncegate.yaml")
	text := "version: 1\nnamespace: shop\nupstream: " + a.URL + "\nstate_dir: " + t.TempDir() + "\n" + yaml
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatalf("config:\n%v", err)
	}
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	tel, err := telemetry.New(t.Context(), telemetry.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	r.gate = lock.NewGate(store, lock.Options{StoreTimeout: time.Second})
	h, err := proxy.New(proxy.Options{Config: c, Gate: r.gate, Telemetry: tel, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	r.front = httptest.NewServer(h)
	t.Cleanup(func() {
		r.front.Close()
		ctx := t.Context()
		_ = r.gate.Close(ctx)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

const stripeRoute = `
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: ` + secret + `, app_limit: 0s, wait: 5s}
`

// signed returns a delivery as Stripe would send it.
func (r *rig) signed(path, body string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.front.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", now, body)
	req.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", now, hex.EncodeToString(mac.Sum(nil))))
	req.Header.Set("Content-Type", "application/json")
	return req
}

// A seen is an answer as the sender saw it.
type seen struct {
	status int
	result string
	header http.Header
	body   string
	err    error
}

func (r *rig) send(req *http.Request) seen {
	r.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return seen{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return seen{resp.StatusCode, resp.Header.Get("Oncegate-Result"), resp.Header, string(body), err}
}

// expect sends a delivery and wants a status and a result word.
func (r *rig) expect(req *http.Request, status int, result string) seen {
	r.t.Helper()
	s := r.send(req)
	if s.err != nil || s.status != status || s.result != result {
		r.t.Errorf("%s: got %d %q (%v), want %d %q: %s", req.URL.Path, s.status, s.result, s.err, status, result, s.body)
	}
	return s
}
