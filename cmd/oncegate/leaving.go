package main

import (
	"net/http"
	"sync/atomic"
)

// A leaving is a handler that, once it has been told to, ends each connection
// with its next answer. A client that keeps connections then comes by a new one,
// or to another replica; when the time comes to close those that are idle, few
// are left on which a request may be on its way, to be lost.
type leaving struct {
	http.Handler
	begun atomic.Bool
}

// ServeHTTP implements http.Handler.
func (l *leaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.Handler.ServeHTTP(&lastAnswer{ResponseWriter: w, begun: &l.begun}, r)
}

// A lastAnswer says, once it is time to, that it is its connection's last.
type lastAnswer struct {
	http.ResponseWriter
	begun    *atomic.Bool
	answered bool
}

// Unwrap is for http.ResponseController.
func (w *lastAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *lastAnswer) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.answered = true
		if w.begun.Load() {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *lastAnswer) Write(b []byte) (int, error) {
	if !w.answered {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}
