package telemetry

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// batching returns how spans are gathered, as OTEL_BSP_* want it. The SDK takes
// their numbers as they are: it panics for a queue below nothing, and for no delay
// it keeps a core busy. What can't be meant is said, and the default stands.
func batching(log *slog.Logger) []sdktrace.BatchSpanProcessorOption {
	queue := whole(log, "OTEL_BSP_MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize, 1<<16)
	batch := whole(log, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize, 1<<16)
	const day = 24 * 60 * 60 * 1000
	delay := whole(log, "OTEL_BSP_SCHEDULE_DELAY", sdktrace.DefaultScheduleDelay, day)
	timeout := whole(log, "OTEL_BSP_EXPORT_TIMEOUT", sdktrace.DefaultExportTimeout, day)
	return []sdktrace.BatchSpanProcessorOption{
		sdktrace.WithMaxQueueSize(queue),
		sdktrace.WithMaxExportBatchSize(min(batch, queue)),
		sdktrace.WithBatchTimeout(time.Duration(delay) * time.Millisecond),
		sdktrace.WithExportTimeout(time.Duration(timeout) * time.Millisecond),
	}
}

// whole returns a variable's whole number from 1 to most.
func whole(log *slog.Logger, name string, otherwise, most int) int {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		log.Warn(fmt.Sprintf("%s is not followed: set it to a whole number from 1 to %d, or not at all", name, most), "instead", otherwise)
		return otherwise
	}
	return n
}

// An sdkLog gets what the SDK can't read in the environment. It passes on what
// was being read and nothing else: the rest is the variable's text, and the one
// for headers holds a collector's credentials. Left alone, the SDK writes all of
// it to standard error.
type sdkLog struct{ handle func(error) }

func (l sdkLog) Init(logr.RuntimeInfo) {}

func (l sdkLog) Enabled(int) bool { return false }

func (l sdkLog) Info(int, string, ...any) {}

func (l sdkLog) Error(_ error, doing string, _ ...any) {
	l.handle(fmt.Errorf("an OTEL_* variable can't be used: %s", doing))
}

func (l sdkLog) WithValues(...any) logr.LogSink { return l }

func (l sdkLog) WithName(string) logr.LogSink { return l }
