package telemetry

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// traced returns a Telemetry with tracing on, and the spans that ended.
func traced(t *testing.T) (*Telemetry, *tracetest.SpanRecorder) {
	t.Helper()
	tel, _ := start(t)
	spans := tracetest.NewSpanRecorder()
	tel.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("oncegate")
	return tel, spans
}

const (
	strangersTrace = "0af7651916cd43dd8448eb211c80319c"
	strangersSpan  = "b7ad6b7169203331"
)

func webhook() *http.Request {
	r := httptest.NewRequest("POST", "/stripe/webhook?token=s3cret", nil)
	r.Header.Set("Traceparent", "00-"+strangersTrace+"-"+strangersSpan+"-01")
	r.Header.Set("Tracestate", "vendor=free-text")
	return r
}

func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

func TestSpans(t *testing.T) {
	tel, spans := traced(t)
	r := webhook()
	ctx, server := tel.StartServer(context.Background(), r, "stripe")
	// The attempt outlives its sender.
	cctx, client := tel.StartClient(context.WithoutCancel(ctx), "stripe", "POST", 2)
	toApp := r.Header.Clone()
	client.Inject(toApp)
	client.End(cctx, 500, ErrorNone)
	tel.Record(ctx, Outcome{Route: "stripe", Provider: "stripe", Key: "evt_1", Result: ResultFailed, Status: 500, Attempt: 2, SecondRun: true})
	server.End(ctx, 500, ErrorNone)

	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans", len(ended))
	}
	c, s := ended[0], ended[1]
	if s.Name() != "POST /stripe/webhook" || s.SpanKind() != trace.SpanKindServer || s.Parent().IsValid() {
		t.Errorf("server span: %s %s, parent %v", s.Name(), s.SpanKind(), s.Parent())
	}
	if c.Name() != "POST" || c.SpanKind() != trace.SpanKindClient || c.Parent().SpanID() != s.SpanContext().SpanID() {
		t.Errorf("client span: %s %s, parent %v", c.Name(), c.SpanKind(), c.Parent())
	}
	for key, want := range map[string]string{
		"http.request.method": "POST", "http.route": "/stripe/webhook", "url.path": "/stripe/webhook", "url.scheme": "http",
		"http.response.status_code": "500", "error.type": "500", "network.protocol.version": "1.1",
		"oncegate.route": "stripe", "oncegate.result": "failed", "oncegate.attempt": "2", "oncegate.key": "evt_1", "oncegate.second_run": "true",
	} {
		if got := attr(s, key); got != want {
			t.Errorf("server %s: %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{
		"server.address": "127.0.0.1", "server.port": "8000", "http.response.status_code": "500", "error.type": "500", "oncegate.attempt": "2",
	} {
		if got := attr(c, key); got != want {
			t.Errorf("client %s: %q, want %q", key, got, want)
		}
	}
	if s.Status().Code != codes.Error {
		t.Errorf("server span's status: %v", s.Status())
	}

	t.Run("a stranger's trace is linked and not believed", func(t *testing.T) {
		if got := s.SpanContext().TraceID().String(); got == strangersTrace {
			t.Error("the sender chose our trace")
		}
		if len(s.Links()) != 1 || s.Links()[0].SpanContext.SpanID().String() != strangersSpan {
			t.Fatalf("links: %v", s.Links())
		}
		if state := s.Links()[0].SpanContext.TraceState().String(); state != "" {
			t.Errorf("the sender's free text is in our span: %s", state)
		}
	})
	t.Run("the app gets our traceparent", func(t *testing.T) {
		want := "00-" + s.SpanContext().TraceID().String() + "-" + c.SpanContext().SpanID().String() + "-01"
		if got := toApp.Values("Traceparent"); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %s", got, want)
		}
		if got := toApp.Get("Tracestate"); got != "" {
			t.Errorf("the sender's tracestate goes with our traceparent: %s", got)
		}
		if r.Header.Get("Traceparent") == want {
			t.Error("the delivery itself was changed")
		}
	})
}

func TestPassingThrough(t *testing.T) {
	tel, spans := traced(t)
	r := httptest.NewRequest("BREW", "/password/reset/t0ken?email=a@b.example", nil)
	r.Header.Set("Traceparent", "00-nonsense")
	ctx, server := tel.StartServer(context.Background(), r, "")
	server.End(ctx, 418, ErrorNone)
	s := spans.Ended()[0]
	if s.Name() != "HTTP" || attr(s, "http.request.method") != "_OTHER" || len(s.Links()) != 0 || s.Status().Code != codes.Unset {
		t.Errorf("%s %v %v %v", s.Name(), s.Attributes(), s.Links(), s.Status())
	}
	for _, kv := range s.Attributes() {
		if kv.Value.Type() == attribute.STRING && strings.Contains(kv.Value.String(), "t0ken") {
			t.Errorf("a path that passes through is in the span: %v", kv)
		}
	}
	has(t, scrape(t, tel), `http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="418",url_scheme="http"} 1`)
}

func TestTracingOffAddsNothing(t *testing.T) {
	tel, log := start(t)
	if tel.Tracing() {
		t.Fatal("tracing is on without being asked for")
	}
	r := webhook()
	ctx, server := tel.StartServer(r.Context(), r, "stripe")
	if ctx != r.Context() {
		t.Error("the context was replaced")
	}
	cctx, client := tel.StartClient(ctx, "stripe", "POST", 1)
	toApp := r.Header.Clone()
	client.Inject(toApp)
	if toApp.Get("Traceparent") != r.Header.Get("Traceparent") || toApp.Get("Tracestate") != "vendor=free-text" {
		t.Errorf("headers were changed: %v", toApp)
	}
	client.End(cctx, 200, ErrorNone)
	server.End(ctx, 200, ErrorNone)
	tel.Record(ctx, Outcome{Route: "stripe", Result: ResultFresh})
	if strings.Contains(log.String(), "trace_id") {
		t.Error("a trace is named that does not exist")
	}
}

func TestRequestDurations(t *testing.T) {
	tel, _ := start(t)
	ctx := context.Background()
	for _, route := range []string{"stripe", "github", ""} {
		sctx, server := tel.StartServer(ctx, httptest.NewRequest("POST", "https://shop.example/x", nil), route)
		cctx, client := tel.StartClient(sctx, route, "POST", 0)
		client.End(cctx, 0, ErrorRefused)
		server.End(sctx, 502, ErrorNone)
	}
	has(t, scrape(t, tel),
		`http_server_request_duration_seconds_count{error_type="502",http_request_method="POST",http_response_status_code="502",http_route="/stripe/webhook",url_scheme="https"} 1`,
		`http_server_request_duration_seconds_count{error_type="502",http_request_method="POST",http_response_status_code="502",url_scheme="https"} 1`,
		`http_client_request_duration_seconds_count{error_type="refused",http_request_method="POST",server_address="ci.internal",server_port="9000",url_scheme="http"} 1`,
		`http_client_request_duration_seconds_count{error_type="refused",http_request_method="POST",server_address="127.0.0.1",server_port="8000",url_scheme="http"} 2`,
	)
}

func BenchmarkRequest(b *testing.B) {
	tel, _ := start(b)
	r := webhook()
	b.ReportAllocs()
	for b.Loop() {
		ctx, server := tel.StartServer(r.Context(), r, "stripe")
		ctx, client := tel.StartClient(ctx, "stripe", "POST", 1)
		client.End(ctx, 200, ErrorNone)
		server.End(ctx, 200, ErrorNone)
	}
}
