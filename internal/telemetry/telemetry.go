package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
)

// maxSeries bounds the series of one instrument, should the closed sets of
// labels fail to: beyond it the SDK counts under otel_metric_overflow.
const maxSeries = 20_000

// A Telemetry is where everything that is said about deliveries and requests
// goes. Its methods may be called concurrently.
type Telemetry struct {
	instruments
	log      *slog.Logger
	meter    metric.Meter
	tracer   trace.Tracer // nil: tracing is off
	labels   atomic.Pointer[labels]
	registry *prometheus.Registry
	evidence func(*Outcome)
	// lastPurge is when a purge last succeeded, in Unix nanoseconds; 0: never.
	lastPurge atomic.Int64
	closers   []func(context.Context) error
}

// Options say what New needs.
type Options struct {
	// Log is where lines go; required.
	Log *slog.Logger
	// Version is oncegate's, for build_info and the exported resource.
	Version string
	// Evidence gets every outcome; it must not block, nor keep or change it. Nil:
	// nobody does.
	Evidence func(*Outcome)
}

// New returns a Telemetry that exports what the standard OTEL_* variables ask
// for. An exporter that can't be made is left out, with a warning in the log:
// such variables are often set for a whole pod, and no telemetry is worth a
// webhook. The caller shuts it down.
//
// OpenTelemetry has one error handler and one logger for a process; New sets them
// to the log, at most one line a minute.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{log: o.Log, evidence: o.Evidence, registry: prometheus.NewRegistry()}
	t.labels.Store(newLabels(Upstream{}, nil))
	t.handleErrors()
	scrape, err := otelprom.New(
		otelprom.WithRegisterer(t.registry),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, err
	}
	res := newResource(ctx, o.Version)
	providers := []sdkmetric.Option{
		sdkmetric.WithReader(scrape), sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries),
	}
	if reader := t.metricReader(ctx); reader != nil {
		providers = append(providers, sdkmetric.WithReader(reader))
	}
	meters := sdkmetric.NewMeterProvider(providers...)
	t.closers = append(t.closers, meters.Shutdown)
	t.meter = meters.Meter("oncegate")
	if t.instruments, err = newInstruments(t.meter); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	t.zero(ctx)
	if spans := t.spanExporter(ctx); spans != nil {
		traces := t.newTracerProvider(spans, res)
		t.closers = append(t.closers, traces.Shutdown)
		t.tracer = traces.Tracer("oncegate")
	}
	return t, t.registerProcess(o.Version)
}

// registerProcess adds the figures of the process itself.
func (t *Telemetry) registerProcess(version string) error {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "oncegate_build_info",
		Help:        "1, labelled with oncegate's version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	return errors.Join(
		t.registry.Register(build),
		t.registry.Register(collectors.NewGoCollector()),
		t.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
}

// Tracing reports whether spans are made.
func (t *Telemetry) Tracing() bool { return t.tracer != nil }

// Metrics serves the metrics in Prometheus's format.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:            scrapeErrors{t.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		Timeout:             5 * time.Second,
		EnableOpenMetrics:   true,
	})
}

// scrapeErrors puts what went wrong in a scrape into the log.
type scrapeErrors struct{ log *slog.Logger }

func (s scrapeErrors) Println(v ...any) {
	s.log.Warn("metrics could not be gathered", "error", Cut(errorText(v)))
}

// Shutdown exports what is left, all signals at once so that a collector that
// hangs for one takes no time from the others, and ends the background work. It
// returns when ctx is over at the latest. Nothing is counted afterwards.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	errs := make([]error, len(t.closers))
	var wg sync.WaitGroup
	for i, c := range t.closers {
		wg.Go(func() { errs[i] = c(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
