package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oncegate/internal/admin"
	"oncegate/internal/config"
	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/internal/health"
	"oncegate/internal/openstore"
	"oncegate/internal/telemetry"
	"oncegate/lock"
	"oncegate/proxy"
)

// A service is oncegate at work: its store, its Gate, its listeners. serve and
// demo both run one. It is started once and stopped once.
type service struct {
	version string
	log     *slog.Logger
	level   slog.LevelVar
	// logLost counts lines that were lost; nil where none can be.
	logLost func() int64

	current atomic.Pointer[config.Config]
	tel     *telemetry.Telemetry
	store   *openstore.Store
	journal *lock.Journal // nil where there can be none
	gate    *lock.Gate
	handler *proxy.Handler
	health  *health.Server
	admin   *admin.Server
	// evidence is nil where none is kept.
	evidence *sqlevidence.Store
	recorder *evidence.Recorder
	public   *http.Server
	leaving  leaving
	figures  storeFigures
	// background is replaced by a reload, and else touched by stop alone.
	background *lock.Background

	publicListener, healthListener, adminListener net.Listener
	// broken gets the error of a listener that ended by itself.
	broken chan error
	// work is what goes on beside traffic; life ends it.
	work    sync.WaitGroup
	life    context.Context
	endWork context.CancelFunc
	serving sync.WaitGroup
}

// doneMemory bounds the memory of done claims, in bytes.
const doneMemory = 16 << 20

// start starts everything. With an error nothing is left running.
func (s *service) start(ctx context.Context, c *config.Config) (err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				err = errors.Join(err, undo[i]())
			}
		}
	}()
	s.current.Store(c)
	s.broken = make(chan error, 3)
	s.life, s.endWork = context.WithCancel(context.Background())

	// Addresses first: that one is taken is the commonest mistake, and must not
	// depend on the store.
	if s.publicListener == nil {
		if s.publicListener, err = listen("listen", c.Listen); err != nil {
			return err
		}
	}
	undo = append(undo, s.publicListener.Close)
	if s.healthListener == nil {
		if s.healthListener, err = listen("health", c.Health); err != nil {
			return err
		}
	}
	undo = append(undo, s.healthListener.Close)
	if s.adminListener == nil {
		if s.adminListener, err = listen("admin", c.Admin); err != nil {
			return err
		}
	}
	undo = append(undo, s.adminListener.Close)

	if err := s.openEvidence(c); err != nil {
		return err
	}
	undo = append(undo, s.closeEvidence)
	if s.tel, err = telemetry.New(ctx, telemetry.Options{Log: s.log, Version: s.version, Evidence: s.recorder.Record}); err != nil {
		return err
	}
	undo = append(undo, s.export)
	if err := s.openStore(ctx, c); err != nil {
		return err
	}
	undo = append(undo, s.store.Close)
	s.openJournal(c)
	undo = append(undo, s.closeJournal)
	s.gate = lock.NewGate(s.store, lock.Options{
		StoreTimeout: c.StoreTimeout, Memory: doneMemory, Journal: s.journal, Observe: s.claimEvent,
	})
	undo = append(undo, func() error { return s.gate.Close(context.WithoutCancel(ctx)) })
	if s.handler, err = proxy.New(proxy.Options{Config: c, Gate: s.gate, Telemetry: s.tel, Log: s.log}); err != nil {
		return err
	}
	undo = append(undo, s.handler.Close)
	if err := s.observe(); err != nil {
		return err
	}
	s.startBackground(c)
	s.openAdmin(c)
	s.listenAndServe()
	return nil
}

func listen(field, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; name another address, with %s in the file or ONCEGATE_%s", field, err, field, strings.ToUpper(field))
	}
	return l, nil
}

func (s *service) openStore(ctx context.Context, c *config.Config) error {
	backend, err := openBackend(c)
	if err != nil {
		return err
	}
	s.store, err = openstore.Open(ctx, backend, openstore.Options{Accept: c.Store.AcceptWeak, Timeout: c.StoreTimeout, Log: s.log})
	if err != nil {
		return errors.Join(fmt.Errorf("store %s: %w", c.Store, err), backend.Close())
	}
	return nil
}

// claimEvent takes in what the claim protocol did beside the answers.
func (s *service) claimEvent(e lock.Event) {
	s.tel.Claim(e)
	if e.Kind == lock.EventWitness {
		s.recorder.Witnessed(e.Key, e.Text, e.Testimony, e.Err)
	}
}

// observe lets the metrics look at what can only be looked at.
func (s *service) observe() error {
	return s.tel.Observe(telemetry.Gauges{
		InHand:       func() int64 { n, _ := s.handler.InHand(); return n },
		InHandBytes:  func() int64 { _, n := s.handler.InHand(); return n },
		Owed:         func() int64 { return int64(s.gate.Owed()) },
		StoreUp:      func() bool { return s.store.State() == openstore.Reachable },
		StoreFit:     s.store.Fit,
		StoreUnknown: func() int64 { return int64(s.store.Unknown()) },
		Figures:      s.figures.last,
		Dropped:      s.recorder.Dropped,
		LogLost:      s.logLost,

		EvidencePurged: s.recorder.Purged,
	})
}

func (s *service) storeState() health.StoreState {
	switch s.store.State() {
	case openstore.Reachable:
		return health.StoreReachable
	case openstore.Unreachable:
		return health.StoreUnreachable
	}
	return health.StoreUnasked
}

// Bounds of the public listener. There is no limit on how long a request or an
// answer may take: what passes through may stream for hours.
const (
	headTime  = 10 * time.Second // from the connection, or a request's first byte, to the end of its head
	headBytes = 64 << 10
	// Longer than load balancers keep their connections (Google's: 10 minutes), so
	// that it is they that close one. The other way round, a request meets the close
	// on its way and is lost. Where places are scarce, idle ones make room.
	idleTime = 11 * time.Minute
)

func (s *service) listenAndServe() {
	s.health = health.New(health.Options{Metrics: s.tel.Metrics(), Store: s.storeState, Version: s.version, Log: s.log})
	s.serving.Go(func() {
		if err := s.health.Serve(s.healthListener); err != nil {
			s.broken <- fmt.Errorf("health listener: %w", err)
		}
	})
	s.serveAdmin()
	s.leaving.Handler = s.handler
	s.public = &http.Server{
		Handler:           &s.leaving,
		ReadHeaderTimeout: headTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headBytes,
		// "OPTIONS *" is the app's to answer.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols:                    new(http.Protocols),
	}
	s.public.Protocols.SetHTTP1(true)
	connections, fits := fitting(maxConnections(), debug.SetMemoryLimit(-1), s.current.Load().MaxInHandBytes)
	if !fits {
		s.log.Warn("the memory's limit leaves no room beside what may be in hand; make max_in_hand_bytes smaller, or the limit larger")
	}
	crowd := newCrowd(s.publicListener, connections)
	s.public.ConnState = crowd.changed
	s.serving.Go(func() {
		if err := s.public.Serve(crowd); !errors.Is(err, http.ErrServerClosed) {
			s.broken <- fmt.Errorf("public listener: %w", err)
		}
	})
	s.health.Ready()
}

func (s *service) publicAddr() string { return s.publicListener.Addr().String() }
func (s *service) healthAddr() string { return s.healthListener.Addr().String() }
