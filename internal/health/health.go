// Package health answers whether oncegate lives and is ready, and serves its
// metrics, on a listener of its own.
//
//	GET /livez    200 as long as the process can answer at all
//	GET /readyz   200 between Ready and Drain, else 503
//	GET /metrics  the metrics
//
// The listener shares nothing with traffic: no limit on what is in hand, no
// route, no store. Probes are answered while the public listener is full, and
// while somebody floods this one, whose oldest connections make room.
//
// A store that is out of reach changes neither status: traffic that needs no
// claim still passes, and taking every replica out at once, or starting them
// anew, would turn the store's outage into the app's. It is a field in the body
// of /readyz:
//
//	{"status":"ready","store":"unreachable","version":"1.2.3"}
//
// Nothing here is secret, and nothing asks for a token.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A StoreState is what is known of the store without asking it.
type StoreState string

// The states of the store, as the body of /readyz names them.
const (
	StoreReachable   StoreState = "reachable"
	StoreUnreachable StoreState = "unreachable"
	StoreUnasked     StoreState = "unasked" // nothing has been asked of it yet
)

// Options say what New needs; all but Version are required.
type Options struct {
	Metrics http.Handler
	// Store returns at once, from memory.
	Store   func() StoreState
	Version string
	Log     *slog.Logger
}

// A Server is the health listener's. Its methods may be called concurrently.
type Server struct {
	http  http.Server
	phase atomic.Value // of a string: what /readyz says
	o     Options
}

// The phases of a process, as the body of /readyz names them.
const (
	starting = "starting"
	ready    = "ready"
	draining = "draining"
)

// New returns a server that is not ready yet.
func New(o Options) *Server {
	s := &Server{o: o}
	s.phase.Store(starting)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", o.Metrics)
	s.http = http.Server{
		Handler:           mux,
		ReadTimeout:       5 * time.Second,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(&recent{Listener: l, most: mostConnections}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends Serve. It is the last thing to be ended, so that probes are
// answered while traffic drains.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Ready says that the public listener is up. After Drain it says nothing.
func (s *Server) Ready() { s.phase.CompareAndSwap(starting, ready) }

// Drain says that the process has been told to stop.
func (s *Server) Drain() { s.phase.Store(draining) }

func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, map[string]string{"status": "live", "version": s.o.Version})
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	phase := s.phase.Load().(string)
	status := http.StatusOK
	if phase != ready {
		status = http.StatusServiceUnavailable
	}
	s.answer(w, status, map[string]string{"status": phase, "store": string(s.o.Store()), "version": s.o.Version})
}

func (s *Server) answer(w http.ResponseWriter, status int, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.o.Log.Debug("probe went away", "error", err)
	}
}
