package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A buffer may be written to and read concurrently.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var shop = []Route{
	{Name: "stripe", Provider: "stripe", Path: "/stripe/webhook"},
	{Name: "github", Provider: "github", Scope: "code", Path: "/hooks/github", Upstream: Upstream{"http", "ci.internal:9000"}},
}

// start returns a Telemetry with the shop's routes, and its log.
func start(t testing.TB) (*Telemetry, *buffer) {
	t.Helper()
	log := &buffer{}
	tel, err := New(context.Background(), Options{Log: NewLogger(log, slog.LevelDebug), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What a test leaves unexported is not its concern.
		_ = tel.Shutdown(context.Background())
	})
	tel.SetRoutes(Upstream{"http", "127.0.0.1:8000"}, shop)
	return tel, log
}

// scrape returns oncegate's own lines of /metrics and those by the conventions.
func scrape(t testing.TB, tel *Telemetry) []string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scrape: %d, %v: %s", w.Code, err, body)
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "oncegate_") || strings.HasPrefix(line, "http_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// has fails the test unless each want is a line.
func has(t *testing.T, lines []string, want ...string) {
	t.Helper()
	for _, w := range want {
		found := false
		for _, l := range lines {
			found = found || l == w
		}
		if !found {
			name, _, _ := strings.Cut(w, "{")
			var near []string
			for _, l := range lines {
				if strings.HasPrefix(l, name) {
					near = append(near, l)
				}
			}
			t.Errorf("no line %s\nbut\n%s", w, strings.Join(near, "\n"))
		}
	}
}
