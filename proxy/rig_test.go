package proxy_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
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
	"oncegate/internal/evidence"
	"oncegate/internal/telemetry"
	"oncegate/lock"
	"oncegate/lock/memlock"
	"oncegate/proxy"
)

// A rig is oncegate in front of an app.
type rig struct {
	t       testing.TB
	app     *app
	store   store
	gate    *lock.Gate
	handler *proxy.Handler
	tel     *telemetry.Telemetry
	front   *httptest.Server
	log     *lockedBuffer
	kept    *kept
	url     string // of the app
}

// newRig starts a rig in front of a. The YAML holds top-level settings and
// routes; upstream and namespace are added.
func newRig(t testing.TB, a *app, s store, yaml string) *rig {
	t.Helper()
	r := startRig(t, a.URL, s, "namespace: shop\n"+yaml)
	r.app = a
	return r
}

// startRig starts a rig in front of what is at url.
func startRig(t testing.TB, url string, s store, yaml string) *rig {
	t.Helper()
	r := &rig{t: t, store: s, url: url, log: new(lockedBuffer), kept: &kept{rows: map[evidence.ID]evidence.Entry{}}}
	c := r.load(yaml)
	logger := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if r.tel, err = telemetry.New(t.Context(), telemetry.Options{Log: logger, Evidence: r.kept.recorder(t, logger).Record}); err != nil {
		t.Fatal(err)
	}
	r.gate = lock.NewGate(s, lock.Options{StoreTimeout: c.StoreTimeout, Observe: r.tel.Claim})
	r.handler, err = proxy.New(proxy.Options{Config: c, Gate: r.gate, Telemetry: r.tel, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	r.front = httptest.NewUnstartedServer(r.handler)
	r.front.Config.DisableGeneralOptionsHandler = true
	r.front.Config.ErrorLog = log.New(r.log, "", 0)
	r.front.Start()
	t.Cleanup(func() {
		r.handler.Cut()
		r.front.Close()
		_ = r.gate.Close(context.Background()) // a test may leave the store out of reach
		if err := r.handler.Close(); err != nil {
			t.Error(err)
		}
		if n, bytes := r.handler.InHand(); n != 0 || bytes != 0 {
			t.Errorf("%d deliveries and %d bytes are left in hand", n, bytes)
		}
		if strings.Contains(r.log.String(), "panic") {
			t.Errorf("the server logged a panic:\n%s", r.log)
		}
	})
	return r
}

// load loads a configuration.
func (r *rig) load(yaml string) *config.Config {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "oncegate.yaml")
	text := "version: 1\nupstream: " + r.url + "\nstate_dir: " + r.t.TempDir() + "\n" + yaml
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: path})
	if err != nil {
		r.t.Fatalf("config:\n%v", err)
	}
	return c
}

// records returns how many records the store holds in namespace shop.
func (r *rig) records() (n int) {
	r.t.Helper()
	counts, err := r.store.Count(context.Background(), "shop")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, count := range counts.Claims {
		n += count
	}
	return n
}

// claim returns the one record of the route's scope.
func (r *rig) claim(scope string) lock.Record {
	r.t.Helper()
	list, err := r.store.List(context.Background(), lock.Filter{Namespace: "shop", Scope: scope}, lock.Cursor{}, 2)
	if err != nil || len(list) != 1 {
		r.t.Fatalf("records of %s: %d, %v", scope, len(list), err)
	}
	return list[0]
}

// scrape returns the metrics.
func (r *rig) scrape() string {
	w := httptest.NewRecorder()
	r.tel.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// counts returns what a counter of the scrape stands at.
func (r *rig) counts(series string) string {
	for line := range strings.Lines(r.scrape()) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	r.t.Errorf("there is no counter %s", series)
	return ""
}

// inHand waits until n deliveries are in hand.
func (r *rig) inHand(n int64) {
	r.t.Helper()
	eventually(r.t, func() bool { got, _ := r.handler.InHand(); return got == n })
}

// eventually waits until something holds.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to that")
		}
	}
}

const secret = "whsec_test_of_the_proxy"

const stripeRoute = `
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: ` + secret + `, app_limit: 0s, wait: 5s}
`

// acmeRoute is a route without a preset, signed over its body; more is added to
// it, such as a key.
func acmeRoute(more string) string {
	return `
routes:
  acme:
    path: /hooks/acme
    secrets: ` + secret + `
    verify: {hmac: sha256, header: X-Sig, format: "{hex}", signed: "{body}"}
    app_limit: 0s
    ` + strings.ReplaceAll(strings.TrimSpace(more), "\n", "\n    ") + "\n"
}

func mac(key, text string) string {
	m := hmac.New(sha256.New, []byte(key))
	io.WriteString(m, text)
	return hex.EncodeToString(m.Sum(nil))
}

// stripeSignature is what Stripe puts beside a body at a moment.
func stripeSignature(key, body string, at time.Time) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), mac(key, fmt.Sprintf("%d.%s", at.Unix(), body)))
}

// stripe returns a delivery as Stripe would send it.
func (r *rig) stripe(body string) *http.Request {
	return r.post("/stripe/webhook", body, "Stripe-Signature", stripeSignature(secret, body, time.Now()))
}

// acme returns a delivery for acmeRoute.
func (r *rig) acme(body string, header ...string) *http.Request {
	return r.post("/hooks/acme", body, append(header, "X-Sig", mac(secret, body))...)
}

// post returns a request with header lines in pairs; a name may stand again.
func (r *rig) post(path, body string, header ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.front.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Content-Type" {
			req.Header.Del("Content-Type")
		}
		req.Header[header[i]] = append(req.Header[header[i]], header[i+1])
	}
	return req
}

// An answered is an answer as the sender saw it.
type answered struct {
	status int
	result string
	header http.Header
	body   string
	err    error
}

// sender is what all senders send with: it takes answers as they come.
var sender = &http.Transport{DisableCompression: true}

func (r *rig) send(req *http.Request) answered {
	resp, err := sender.RoundTrip(req)
	if err != nil {
		return answered{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answered{resp.StatusCode, resp.Header.Get("Oncegate-Result"), resp.Header, string(body), err}
}

// expect sends a delivery and wants a status and a result word.
func (r *rig) expect(req *http.Request, status int, result string) answered {
	r.t.Helper()
	s := r.send(req)
	if s.err != nil || s.status != status || !is(s.result, result) {
		r.t.Errorf("%s: got %d %q (%v), want %d %q: %.300s", req.URL.Path, s.status, s.result, s.err, status, result, s.body)
	}
	return s
}

// is reports whether a result is the one that is wanted. A duplicate that comes
// just when the attempt has ended may count as one that waited for it.
func is(result, want string) bool {
	return result == want || result == "waited" && want == "replay" || result == "replay" && want == "waited"
}

// later sends a delivery beside the test.
func (r *rig) later(req *http.Request) <-chan answered {
	c := make(chan answered, 1)
	go func() { c <- r.send(req) }()
	return c
}

// hits wants the app to have been reached n times.
func (r *rig) hits(n int) {
	r.t.Helper()
	if got := r.app.count(); got != n {
		r.t.Errorf("the app was reached %d times, want %d", got, n)
	}
}

// A lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// take returns what was written since the last time.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.b.String()
	b.b.Reset()
	return s
}

func newMem() store { return memlock.New() }

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func now() time.Time { return time.Now() }

// mac64 is mac in base64.
func mac64(key, text string) string {
	m := hmac.New(sha256.New, []byte(key))
	io.WriteString(m, text)
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}
