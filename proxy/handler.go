package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// Options is what a Handler works with. All of it stays the caller's.
type Options struct {
	Config    *config.Config
	Gate      *lock.Gate
	Telemetry *telemetry.Telemetry
	Log       *slog.Logger
}

// A Handler serves the public listener: routes through the Gate, all else
// passed on. It is safe for concurrent use.
type Handler struct {
	gate       *lock.Gate
	tel        *telemetry.Telemetry
	log        *slog.Logger
	hand       hand
	seen       seen
	deliveries sync.WaitGroup

	// bodyTime bounds how long a sender may take to send a delivery's body,
	// answerTime how long it may take nothing of its answer, and pageTime how long
	// any other client may.
	bodyTime, answerTime, pageTime time.Duration

	// life is over when what goes on without a claim is to be cut.
	life context.Context
	cut  context.CancelFunc

	// A request takes the table once and keeps to it.
	table atomic.Pointer[table]

	mu        sync.Mutex // guards what follows; held while a table is made
	apps      map[config.Upstream]*upstream
	witnesses []*configured
}

// A table is a configuration made ready to serve. It does not change.
type table struct {
	config *config.Config
	routes routeTable[*route]
	pass   *pass // nil where what is on no route has nowhere to go
}

// A route is a configured route made ready to serve.
type route struct {
	*config.Route
	namespace string
	policy    *lock.Policy
	app       forward.App
	pass      *pass
}

// An upstream is one app, with the two ways to it.
type upstream struct {
	app  forward.App
	pass *pass
}

// New returns a Handler. It connects to nothing yet.
func New(o Options) (*Handler, error) {
	h := &Handler{
		gate: o.Gate, tel: o.Telemetry, log: o.Log,
		bodyTime: 30 * time.Second, answerTime: 30 * time.Second, pageTime: 2 * time.Minute,
		apps: make(map[config.Upstream]*upstream),
	}
	h.life, h.cut = context.WithCancel(context.Background())
	return h, h.Reload(o.Config)
}

// Reload makes the Handler serve by another configuration, as a whole: requests
// that have begun keep to theirs. With an error nothing has changed.
func (h *Handler) Reload(c *config.Config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &table{config: c, routes: make(routeTable[*route], len(c.Routes))}
	if c.Upstream != (config.Upstream{}) {
		up, err := h.upstream(c.Upstream)
		if err != nil {
			return err
		}
		t.pass = up.pass
	}
	for _, r := range c.Routes {
		up, err := h.upstream(r.Upstream)
		if err != nil {
			return fmt.Errorf("route %s: %w", r.Name, err)
		}
		w, err := h.witness(r)
		if err != nil {
			return fmt.Errorf("route %s: %w", r.Name, err)
		}
		t.routes[canonicalPath(r.Path)] = &route{
			Route: r, namespace: c.Namespace, policy: policyOf(r, w), app: up.app, pass: up.pass,
		}
	}
	h.hand.limit(c.MaxInHand, c.MaxInHandBytes)
	h.tel.SetRoutes(telemetryUpstream(c.Upstream), telemetryRoutes(c.Routes))
	h.table.Store(t)
	return nil
}

// upstream returns the app at u. Apps outlive the configuration that named
// them, since requests do; there are as many as addresses were ever named.
func (h *Handler) upstream(u config.Upstream) (*upstream, error) {
	if up, ok := h.apps[u]; ok {
		return up, nil
	}
	app, err := forward.New(forward.Upstream{
		Scheme: u.Scheme, Address: u.Address, Host: u.Host, Root: u.Root, IdleTimeout: u.IdleTimeout,
	}, forward.Options{Log: h.log, Room: spareRoom{&h.hand}})
	if err != nil {
		return nil, err
	}
	up := &upstream{app: app, pass: newPass(&timed{h.tel, app}, h.passFailed)}
	h.apps[u] = up
	return up, nil
}

// ServeHTTP serves a request by the table that stands when it comes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	defer h.crashed(w, req)
	t := h.table.Load()
	r, ok, err := t.routeOf(req)
	switch {
	case err != nil:
		refusePass(w, err)
	case !ok:
		h.passThrough(w, req, t.pass)
	case r.Mode == config.ModeOff:
		h.passThrough(w, req, r.pass)
	case r.passesBy(req):
		// Through an upgraded connection deliveries could walk past their route.
		req.Header.Del("Upgrade")
		h.passThrough(w, req, r.pass)
	default:
		h.serveRoute(w, req, t, r)
	}
}

// passThrough passes a request on that is no delivery.
func (h *Handler) passThrough(w http.ResponseWriter, req *http.Request, to *pass) {
	ctx, span := h.tel.StartServer(req.Context(), req, "")
	patient := newPatient(w, h.pageTime)
	defer patient.renew()
	noted := &noted{ResponseWriter: patient, final: !req.ProtoAtLeast(1, 1)}
	defer func() { span.End(ctx, noted.status, noted.class) }()
	if to == nil {
		refusePass(noted, errNoUpstream)
		return
	}
	to.ServeHTTP(noted, req.WithContext(ctx))
}

var errNoUpstream = &forward.Error{Kind: forward.Unreached, Err: errors.New("no upstream is configured for this path")}

// passFailed counts an exchange with the app that failed on pass-through.
func (h *Handler) passFailed(req *http.Request, err error) {
	h.log.Warn("the app gave no complete answer", "method", methodOf(req.Method), "error", err.Error())
}

func methodOf(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	}
	return "_OTHER"
}

// InHand returns how many deliveries are in hand, and the bytes of their bodies.
func (h *Handler) InHand() (deliveries, bytes int64) {
	return h.hand.deliveries.Load(), h.hand.bytes.Load()
}

// Cut ends what nobody else ends when the time to drain is over: upgraded
// connections, and deliveries that were forwarded without a claim. Attempts are
// the Gate's to cut.
func (h *Handler) Cut() {
	h.cut()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, up := range h.apps {
		up.pass.closeTunnels()
	}
}

// Close waits for the deliveries that are still under way, and closes the
// connections to all apps. To be called when Gate and server are closed, so that
// no delivery has anything to wait for.
func (h *Handler) Close() error {
	h.Cut()
	h.deliveries.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, up := range h.apps {
		errs = append(errs, up.app.Close())
	}
	for _, w := range h.witnesses {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}

// timed is an app whose exchanges on pass-through are timed and traced.
type timed struct {
	tel *telemetry.Telemetry
	app http.RoundTripper
}

func (t *timed) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := t.tel.StartClient(req.Context(), "", req.Method, 0)
	if t.tel.Tracing() {
		req = req.WithContext(ctx)
		span.Inject(req.Header)
	}
	resp, err := t.app.RoundTrip(req)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	span.End(context.WithoutCancel(ctx), status, classOf(err))
	return resp, err
}

func telemetryUpstream(u config.Upstream) telemetry.Upstream {
	return telemetry.Upstream{Scheme: u.Scheme, Address: u.Address}
}

func telemetryRoutes(routes []*config.Route) []telemetry.Route {
	out := make([]telemetry.Route, len(routes))
	for i, r := range routes {
		out[i] = telemetry.Route{Name: r.Name, Provider: r.Provider, Scope: r.Scope, Path: r.Path, Upstream: telemetryUpstream(r.Upstream)}
	}
	return out
}
