package telemetry

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// A sink is an OTLP collector that keeps what it is sent, by path.
type sink struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string][][]byte
}

func newSink(t *testing.T) *sink {
	s := &sink{got: map[string][][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got[r.URL.Path] = append(s.got[r.URL.Path], b)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) all(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all strings.Builder
	for _, b := range s.got[path] {
		all.Write(b)
	}
	return all.String()
}

// quiet clears what the machine that tests may have set.
func quiet(t *testing.T) {
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL",
	} {
		t.Setenv(name, "")
	}
}

func deliver(tel *Telemetry, r *http.Request, o Outcome) {
	ctx, server := tel.StartServer(r.Context(), r, o.Route)
	cctx, client := tel.StartClient(ctx, o.Route, r.Method, o.Attempt)
	client.Inject(http.Header{})
	client.End(cctx, o.Status, ErrorNone)
	tel.Record(ctx, o)
	server.End(ctx, o.Status, ErrorNone)
}

func TestWhatTheEnvironmentAsksFor(t *testing.T) {
	for _, c := range []struct {
		name            string
		env             map[string]string
		traces, metrics bool
	}{
		{"nothing set", nil, false, false},
		{"an endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, true, true},
		{"an endpoint for traces only", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/v1/traces"}, true, false},
		{"one exporter is none", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_METRICS_EXPORTER": "none"}, true, false},
		{"disabled", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_SDK_DISABLED": "TRUE"}, false, false},
		{"an exporter that we do not have", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_TRACES_EXPORTER": "zipkin"}, false, true},
		{"a protocol that we do not have", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			quiet(t)
			s := newSink(t)
			for name, value := range c.env {
				t.Setenv(name, strings.Replace(value, "URL", s.URL, 1))
			}
			tel, log := start(t)
			deliver(tel, webhook(), Outcome{Route: "stripe", Key: "evt_1", Result: ResultFresh, Status: 200, Attempt: 1})
			if err := tel.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if got := s.all("/v1/traces") != ""; got != c.traces {
				t.Errorf("traces exported: %v", got)
			}
			if got := s.all("/v1/metrics") != ""; got != c.metrics {
				t.Errorf("metrics exported: %v", got)
			}
			if c.traces && !strings.Contains(log.String(), `"trace_id":"`) {
				t.Error("the log line does not name the trace")
			}
			if wrong := strings.Contains(c.name, "we do not have"); wrong != strings.Contains(log.String(), "not exported: set OTEL_") {
				t.Errorf("warned: %s", log.String())
			}
		})
	}
}

func TestDeltaTemporality(t *testing.T) {
	quiet(t)
	s := newSink(t)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", s.URL+"/v1/metrics")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
	t.Setenv("OTEL_SERVICE_NAME", "webhooks")
	tel, _ := start(t)
	tel.Record(context.Background(), Outcome{Route: "stripe", Result: ResultFresh})
	has(t, scrape(t, tel), `oncegate_deliveries_total{result="fresh",route="stripe"} 1`)
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	var sent collector.ExportMetricsServiceRequest
	if err := proto.Unmarshal([]byte(s.all("/v1/metrics")), &sent); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sent.ResourceMetrics[0].Resource.String(), `"webhooks"`) {
		t.Errorf("resource: %v", sent.ResourceMetrics[0].Resource)
	}
	for _, m := range sent.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		if m.Name == "oncegate.deliveries" {
			if got := m.GetSum().AggregationTemporality; got != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA {
				t.Errorf("temporality %v", got)
			}
			return
		}
	}
	t.Error("oncegate.deliveries was not exported")
}

// A collector that takes connections and never answers.
func blackHole(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

func TestExporterDelaysNothing(t *testing.T) {
	// Far more than the queue of spans holds.
	storm := func(tel *Telemetry) time.Duration {
		began := time.Now()
		for range 3_000 {
			deliver(tel, webhook(), Outcome{Route: "stripe", Result: ResultFresh, Status: 200, Attempt: 1})
		}
		return time.Since(began)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", newSink(t).URL)
	well, _ := start(t)
	asEver := storm(well)
	for name, endpoint := range map[string]func() string{
		"down": func() string { return "http://127.0.0.1:1" },
		"slow": func() string { return blackHole(t) },
	} {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint())
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
			t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
			tel, _ := start(t)
			// One that waited for the exporter would take hours.
			if took := storm(tel); took > 20*asEver {
				t.Errorf("3000 deliveries took %v, and %v while the exporter works", took, asEver)
			}
			if lines := scrape(t, tel); len(lines) == 0 {
				t.Error("no metrics while the exporter hangs")
			}
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			began := time.Now()
			if err := tel.Shutdown(ctx); err == nil {
				t.Error("nobody was told that telemetry was lost")
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("shutdown took %v", took)
			}
		})
	}
}

func TestExportErrorsAreLoggedOnceAMinute(t *testing.T) {
	log := &buffer{}
	h := &errorHandler{log: NewLogger(log, slog.LevelInfo)}
	for range 1000 {
		h.handle(errors.New("collector " + strings.Repeat("x", 10_000)))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || len(log.String()) > 1000 {
		t.Errorf("%d lines, %d bytes", n, len(log.String()))
	}
	if h.unsaid != 999 {
		t.Errorf("unsaid %d", h.unsaid)
	}
	_, log = start(t)
	otel.Handle(errors.New("collector down"))
	// An exporter of an earlier test, which still tries, may have been first.
	if !strings.Contains(log.String(), "telemetry export") {
		t.Error("the SDK's errors do not reach the log")
	}
}

// Nothing that a request holds, but for its event key, comes out anywhere.
func TestCanaries(t *testing.T) {
	quiet(t)
	s := newSink(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	tel, log := start(t)
	const canary = "CANARY"
	header := http.Header{}
	for _, name := range []string{
		"Authorization", "Cookie", "Stripe-Signature", "X-Hub-Signature-256", "User-Agent", "Referer", "Origin", "X-Forwarded-For", "Forwarded",
		"X-Real-Ip", "Content-Type", "Accept", "Idempotency-Key", "Baggage", "X-" + canary, "Proxy-Authorization", "Te", "Via",
	} {
		header.Set(name, canary)
	}
	header.Set("Traceparent", "00-"+strangersTrace+"-"+strangersSpan+"-01")
	header.Set("Tracestate", "canary="+canary)
	for _, route := range []string{"stripe", "", "CANARY"} {
		for _, method := range []string{"POST", "GET", canary} {
			r := httptest.NewRequest("POST", "http://user:CANARY@canary.example/p/CANARY?q=CANARY", strings.NewReader(canary))
			r.Method, r.Header, r.Host, r.RemoteAddr, r.RequestURI = method, header.Clone(), canary, canary, "/"+canary
			ctx, server := tel.StartServer(r.Context(), r, route)
			cctx, client := tel.StartClient(ctx, route, method, 1)
			client.Inject(r.Header)
			client.End(cctx, 0, ErrorClass(canary))
			if route == "stripe" {
				tel.Record(ctx, Outcome{Route: route, Key: "evt_1", Result: ResultUnknown, Status: 502, Attempt: 1, Error: ErrorBroken})
			}
			server.End(ctx, 502, ErrorNone)
		}
	}
	lines := strings.Join(scrape(t, tel), "\n")
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"spans": s.all("/v1/traces"), "exported metrics": s.all("/v1/metrics"), "scraped metrics": lines, "log": log.String(),
	} {
		if !strings.Contains(text, "stripe") {
			t.Errorf("%s: nothing came out at all", name)
		}
		if i := strings.Index(strings.ToUpper(text), canary); i >= 0 {
			t.Errorf("%s: %q", name, text[max(0, i-60):min(len(text), i+60)])
		}
	}
}
