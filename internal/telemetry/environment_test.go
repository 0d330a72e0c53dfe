package telemetry

import (
	"context"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Variables that were set for a whole pod end no process and take no core of
// it, whatever they say.
func TestBatching(t *testing.T) {
	usual := sdktrace.BatchSpanProcessorOptions{MaxQueueSize: 2048, MaxExportBatchSize: 512, BatchTimeout: 5 * time.Second, ExportTimeout: 30 * time.Second}
	with := func(change func(*sdktrace.BatchSpanProcessorOptions)) sdktrace.BatchSpanProcessorOptions {
		o := usual
		change(&o)
		return o
	}
	for _, c := range []struct {
		env  map[string]string
		want sdktrace.BatchSpanProcessorOptions
		said bool
	}{
		{env: nil, want: usual},
		{env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "99999999999"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "0"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "-5"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_EXPORT_TIMEOUT": "0"}, want: usual, said: true},
		{env: map[string]string{"OTEL_BSP_SCHEDULE_DELAY": " 100 "}, want: with(func(o *sdktrace.BatchSpanProcessorOptions) { o.BatchTimeout = 100 * time.Millisecond })},
		{env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "7"}, want: with(func(o *sdktrace.BatchSpanProcessorOptions) { o.MaxQueueSize, o.MaxExportBatchSize = 7, 7 })},
	} {
		for name, value := range c.env {
			t.Setenv(name, value)
		}
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		tel, log := start(t)
		var got sdktrace.BatchSpanProcessorOptions
		for _, option := range batching(tel.log) {
			option(&got)
		}
		if got != c.want {
			t.Errorf("%v: %+v, want %+v", c.env, got, c.want)
		}
		if said := strings.Contains(log.String(), "is not followed: set it to a whole number"); said != c.said {
			t.Errorf("%v: said: %s", c.env, log.String())
		}
		for name := range c.env {
			t.Setenv(name, "")
		}
	}
}

// What the SDK can't read of the environment is said without its text, which may
// hold credentials.
func TestUnreadableHeaders(t *testing.T) {
	const canary = "CANARY"
	for _, headers := range []string{"Authorization: Bearer " + canary, "api-key=" + canary + "%zz"} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
		tel, log := start(t)
		if text := log.String(); !strings.Contains(text, "an OTEL_* variable can't be used") || strings.Contains(text, canary) {
			t.Errorf("%s: %s", headers, text)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = tel.Shutdown(ctx) // nobody listens there
	}
}
