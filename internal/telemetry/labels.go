package telemetry

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"oncegate/lock"
)

// A Route is what telemetry knows of a configured route. Labels are taken from
// here and never from a request.
type Route struct {
	Name, Provider string
	// Scope is the route's scope; empty: its name.
	Scope string
	// Path is the configured path.
	Path string
	// Upstream is where the route's deliveries go.
	Upstream Upstream
}

// An Upstream says where the app is.
type Upstream struct {
	Scheme string // http, https, unix, fcgi
	// Address is host:port, or a socket's path.
	Address string
}

// labels holds the closed sets, and for each combination of labels that was met
// its attributes, made once. It is replaced whole when the configuration is.
type labels struct {
	routes   map[string]Route
	scopes   map[string]bool
	results  map[Result]bool
	upstream Upstream // of what passes through

	outcome series[outcomeKey]
	route   series[string]
	scope   series[string]
	trip    series[string]
	witness series[witnessKey]
	server  series[requestKey]
	client  series[requestKey]
}

type outcomeKey struct {
	route  string
	result Result
}

type witnessKey struct {
	scope string
	said  lock.Testimony
}

// A requestKey holds bounded values only: see bound.
type requestKey struct {
	route  string // empty: passing through
	method string
	scheme string
	status int
	err    ErrorClass
}

func newLabels(upstream Upstream, routes []Route) *labels {
	l := &labels{routes: map[string]Route{}, scopes: map[string]bool{}, results: map[Result]bool{}, upstream: upstream}
	for _, word := range Results() {
		l.results[word] = true
	}
	for _, r := range routes {
		if r.Scope == "" {
			r.Scope = r.Name
		}
		l.routes[r.Name] = r
		l.scopes[r.Scope] = true
	}
	l.outcome.attrs = func(k outcomeKey) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("route", k.route), attribute.String("result", string(k.result))}
	}
	l.route.attrs = one("route")
	l.scope.attrs = one("scope")
	l.trip.attrs = one("op")
	l.witness.attrs = func(k witnessKey) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("scope", k.scope), attribute.String("said", k.said.String())}
	}
	l.server.attrs = l.serverAttrs
	l.client.attrs = l.clientAttrs
	return l
}

func one(label string) func(string) []attribute.KeyValue {
	return func(value string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String(label, value)}
	}
}

func (l *labels) routeName(name string) string {
	if _, ok := l.routes[name]; ok {
		return name
	}
	return other
}

func (l *labels) scopeName(name string) string {
	if l.scopes[name] {
		return name
	}
	return other
}

func (l *labels) resultWord(r Result) Result {
	if l.results[r] {
		return r
	}
	return other
}

// bound brings each value of a request into its closed set.
func (l *labels) bound(k requestKey) requestKey {
	if k.route != "" {
		k.route = l.routeName(k.route)
	}
	k.method = boundMethod(k.method)
	if k.scheme != "https" {
		k.scheme = "http"
	}
	if k.status < 100 || k.status > 599 {
		k.status = 0
	}
	k.err = k.err.bounded()
	return k
}

// boundMethod returns the method where it is one of RFC 9110 or RFC 5789, as
// the semantic conventions want it. Methods are case-sensitive.
func boundMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return other
}

func (l *labels) serverAttrs(k requestKey) []attribute.KeyValue {
	attrs := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(k.method), semconv.URLScheme(k.scheme)}
	if r, ok := l.routes[k.route]; ok {
		attrs = append(attrs, semconv.HTTPRoute(r.Path))
	}
	return append(attrs, ending(k, 500)...)
}

func (l *labels) clientAttrs(k requestKey) []attribute.KeyValue {
	attrs := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(k.method)}
	attrs = append(attrs, l.upstreamOf(k.route).attributes()...)
	return append(attrs, ending(k, 400)...)
}

// upstreamOf returns where a route's requests go, or those that pass through.
func (l *labels) upstreamOf(route string) Upstream {
	if r, ok := l.routes[route]; ok && r.Upstream.Address != "" {
		return r.Upstream
	}
	return l.upstream
}

// attributes returns where the app is, as the semantic conventions want it.
func (u Upstream) attributes() []attribute.KeyValue {
	host, port, err := net.SplitHostPort(u.Address)
	if err != nil {
		return []attribute.KeyValue{semconv.ServerAddress(u.Address), semconv.URLScheme(u.Scheme)}
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		number = 0
	}
	return []attribute.KeyValue{semconv.ServerAddress(host), semconv.ServerPort(number), semconv.URLScheme(u.Scheme)}
}

// ending returns how a request ended. A status from failure on is an error by
// the conventions: 500 for a server, 400 for a client.
func ending(k requestKey, failure int) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if k.status != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(k.status))
	}
	switch {
	case k.err != ErrorNone:
		attrs = append(attrs, semconv.ErrorTypeKey.String(string(k.err)))
	case k.status >= failure:
		attrs = append(attrs, semconv.ErrorTypeKey.String(strconv.Itoa(k.status)))
	}
	return attrs
}

// A series keeps, for each combination of labels, the options that carry them.
// Its keys are bounded by the caller. Reading takes no lock.
type series[K comparable] struct {
	attrs func(K) []attribute.KeyValue
	known atomic.Pointer[map[K]options]
	mu    sync.Mutex // one addition at a time
}

// options are the same attributes twice, as counters and as histograms take them.
type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func (s *series[K]) get(k K) options {
	if m := s.known.Load(); m != nil {
		if o, ok := (*m)[k]; ok {
			return o
		}
	}
	return s.learn(k)
}

func (s *series[K]) learn(k K) options {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[K]options{}
	if m := s.known.Load(); m != nil {
		if o, ok := (*m)[k]; ok {
			return o
		}
		for k, o := range *m {
			next[k] = o
		}
	}
	set := metric.WithAttributeSet(attribute.NewSet(s.attrs(k)...))
	o := options{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
	next[k] = o
	s.known.Store(&next)
	return o
}
