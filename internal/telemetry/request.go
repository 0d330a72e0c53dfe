package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// A Request is one HTTP request under way, towards us or towards the app. End
// it once.
type Request struct {
	t     *Telemetry
	span  trace.Span // nil: tracing is off
	key   requestKey
	start time.Time
	into  metric.Float64Histogram
	kind  trace.SpanKind
}

// StartServer notes that a request arrived: on a route, or, where route is
// empty, to be passed through. With tracing on, the returned context carries its
// span, the root of a trace of our own; a traceparent that r brought is linked.
// r is only read.
func (t *Telemetry) StartServer(ctx context.Context, r *http.Request, route string) (context.Context, Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	q := Request{
		t: t, start: time.Now(), into: t.server, kind: trace.SpanKindServer,
		key: t.labels.Load().bound(requestKey{route: route, method: r.Method, scheme: scheme}),
	}
	if t.tracer == nil {
		return ctx, q
	}
	attrs := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(q.key.method),
		semconv.URLScheme(scheme),
		semconv.NetworkProtocolVersion(protocol(r)),
	}
	name := spanName(q.key.method)
	if known, ok := t.labels.Load().routes[route]; ok {
		name += " " + known.Path
		attrs = append(attrs, semconv.HTTPRoute(known.Path), semconv.URLPath(known.Path), attribute.String("oncegate.route", route))
	}
	ctx, q.span = t.tracer.Start(ctx, name,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...),
		trace.WithLinks(stranger(r.Header)...))
	return ctx, q
}

// stranger returns a link to the trace that a sender says it is in. Its
// tracestate is left out: it is free text of the sender's.
func stranger(h http.Header) []trace.Link {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: sc.WithTraceState(trace.TraceState{})}}
}

// StartClient notes that a request is sent to the app; attempt is 0 for one
// without a claim. With tracing on, the returned context carries its span.
func (t *Telemetry) StartClient(ctx context.Context, route, method string, attempt int) (context.Context, Request) {
	l := t.labels.Load()
	q := Request{
		t: t, start: time.Now(), into: t.client, kind: trace.SpanKindClient,
		key: l.bound(requestKey{route: route, method: method}),
	}
	if t.tracer == nil {
		return ctx, q
	}
	attrs := append(l.upstreamOf(route).attributes(), semconv.HTTPRequestMethodKey.String(q.key.method))
	if attempt > 0 {
		attrs = append(attrs, attribute.Int("oncegate.attempt", attempt))
	}
	ctx, q.span = t.tracer.Start(ctx, spanName(q.key.method),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	return ctx, q
}

// Inject makes the app's request part of our trace: traceparent becomes q's,
// and a tracestate, which belonged to the sender's, goes. With tracing off it
// does nothing.
func (q Request) Inject(h http.Header) {
	if q.span == nil {
		return
	}
	h.Del("Tracestate")
	ctx := trace.ContextWithSpan(context.Background(), q.span)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// End times the request and ends its span. Status is 0 where there was no
// answer.
func (q Request) End(ctx context.Context, status int, class ErrorClass) {
	l := q.t.labels.Load()
	q.key.status, q.key.err = status, class
	q.key = l.bound(q.key)
	set, failure := l.server.get, 500
	if q.kind == trace.SpanKindClient {
		set, failure = l.client.get, 400
	}
	q.into.Record(ctx, time.Since(q.start).Seconds(), set(q.key).record...)
	if q.span == nil {
		return
	}
	q.span.SetAttributes(ending(q.key, failure)...)
	if class != ErrorNone || status >= failure {
		q.span.SetStatus(codes.Error, string(q.key.err))
	}
	q.span.End()
}

// spanName is HTTP for a method outside the closed set, as the conventions say.
func spanName(method string) string {
	if method == other {
		return "HTTP"
	}
	return method
}

// protocol returns the version of HTTP, without a minor where that is 0.
func protocol(r *http.Request) string {
	if r.ProtoMinor == 0 && r.ProtoMajor > 1 {
		return strconv.Itoa(r.ProtoMajor)
	}
	return strconv.Itoa(r.ProtoMajor) + "." + strconv.Itoa(r.ProtoMinor)
}
