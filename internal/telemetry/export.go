package telemetry

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// wanted reports whether the environment asks for a signal (TRACES, METRICS) to
// be exported. The specification's own default is to export to localhost always;
// a proxy that nobody asked to export does not.
func wanted(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporter := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// spanExporter returns the exporter that the environment asks for; nil for none.
func (t *Telemetry) spanExporter(ctx context.Context) sdktrace.SpanExporter {
	if !wanted("TRACES") {
		return nil
	}
	e, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		t.log.Warn("traces are not exported: set OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_* to what is supported", "error", Cut(err.Error()))
		return nil
	}
	return e
}

// metricReader returns the reader that the environment asks for; nil for none.
func (t *Telemetry) metricReader(ctx context.Context) sdkmetric.Reader {
	if !wanted("METRICS") {
		return nil
	}
	r, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		t.log.Warn("metrics are not exported: set OTEL_METRICS_EXPORTER and OTEL_EXPORTER_OTLP_* to what is supported", "error", Cut(err.Error()))
		return nil
	}
	return r
}

// newTracerProvider sends spans in the background: a full queue drops spans, and
// nothing waits. Sampler, queue and limits follow OTEL_*.
func (t *Telemetry) newTracerProvider(e sdktrace.SpanExporter, res *resource.Resource) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(e, batching(t.log)...), sdktrace.WithResource(res))
}

// newResource says who exports. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// win. The instance is random, so that replicas don't overwrite each other.
func newResource(ctx context.Context, version string) *resource.Resource {
	own := []resource.Option{
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			semconv.ServiceName("oncegate"),
			semconv.ServiceVersion(version),
			semconv.ServiceInstanceID(rand.Text()),
		),
	}
	res, err := resource.New(ctx, append(own, resource.WithFromEnv())...)
	if err != nil {
		// What the environment says can't be read in whole. The rest stands.
		otel.Handle(err)
	}
	return res
}

// handleErrors makes OpenTelemetry's background errors log lines, one a minute,
// and what it can't read of the environment as well.
func (t *Telemetry) handleErrors() {
	h := &errorHandler{log: t.log}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(h.handle))
	otel.SetLogger(logr.New(sdkLog{h.handle}))
}

type errorHandler struct {
	log *slog.Logger

	mu     sync.Mutex // guards what follows
	last   time.Time
	unsaid int
}

func (h *errorHandler) handle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.last.IsZero() && time.Since(h.last) < time.Minute {
		h.unsaid++
		return
	}
	h.log.Warn("telemetry export", "error", Cut(err.Error()), "unsaid", h.unsaid)
	h.last, h.unsaid = time.Now(), 0
}

func errorText(v []any) string {
	return strings.TrimSpace(fmt.Sprintln(v...))
}
