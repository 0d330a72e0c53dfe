package proxy

import (
	"net/http"

	"oncegate/internal/telemetry"
)

// A noted is a ResponseWriter that remembers what was answered. All that the
// writer below can do besides is reached through Unwrap.
type noted struct {
	http.ResponseWriter
	word   telemetry.Result // put on the answer; empty: not a route's
	status int
	class  telemetry.ErrorClass // of a failure

	// alone says that the exchange goes on without its client: to the app,
	// everything is read to the end.
	alone bool
	// final says that 1xx answers are left out. HTTP/1.0 has none: its clients
	// take the first for the answer, and the answer for its body.
	final bool
}

// Unwrap is for http.ResponseController.
func (w *noted) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// failed notes a failure. Where the answer has not begun it will be row's.
func (w *noted) failed(row *row) {
	w.class = row.class
	if w.word != "" && w.status == 0 {
		w.word = row.word
	}
}

func (w *noted) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		if !w.final {
			w.ResponseWriter.WriteHeader(status)
		}
		return
	}
	w.status = status
	if w.word != "" {
		w.Header().Set(resultHeader, string(w.word))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *noted) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	if w.alone {
		return len(b), nil
	}
	return n, err
}
