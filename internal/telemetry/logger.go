package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// ErrLevel says that a log level is not one of debug, info, warn and error.
var ErrLevel = errors.New("not a log level")

// ParseLevel returns the level of that name; empty is info.
func ParseLevel(name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("%w: %q; use debug, info, warn or error", ErrLevel, name)
}

// NewLogger returns a logger that writes lines of JSON to w, each in one write.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
