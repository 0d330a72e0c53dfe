// Package telemetry says what oncegate did: to a log, to metrics and to traces.
//
// # One outcome, one sink
//
// Each delivery on a route ends as one [Outcome], and [Telemetry.Record] makes
// the log line, the metrics and the span's attributes from it. So the three
// agree, and what may be said about a delivery is decided in one place:
//
//	tel.Record(ctx, telemetry.Outcome{
//		Route: "stripe", Key: "evt_1", Result: telemetry.ResultFresh,
//		Status: 200, Attempt: 1, Upstream: took,
//	})
//
// What the claim protocol does beside the answers (renewals, fenced writes,
// round trips to the store) comes to [Telemetry.Claim] as lock events. What can
// only be looked at (in hand, owed, claims by state) is asked for by the
// functions in [Gauges].
//
// # Requests
//
// [Telemetry.StartServer] and [Telemetry.StartClient] time every request, on
// routes and passing through, as http.server.request.duration and
// http.client.request.duration by OpenTelemetry's semantic conventions, and
// make the spans when tracing is on. A sender's traceparent is linked and not
// believed: whoever can send us a request must not be able to choose our trace
// IDs or our sampling. The app gets the traceparent of our own client span.
// When tracing is off, nothing is added to a request.
//
// # What is never said
//
// No body, no header value (but for the event key, where a route takes it from
// a header), no query, no path of a request that passes through (reset links
// and tokens live in paths), no client address. Details in an outcome are the
// texts of oncegate's own errors, which hold none of these either.
//
// # Bounded labels
//
// Every label comes from a closed set: routes, scopes and paths from the
// configuration, result words, methods and error classes from lists here;
// anything else is counted as "_OTHER". Whatever is sent, the number of
// series does not grow.
//
// # Exporting
//
// Metrics can always be scraped from [Telemetry.Metrics], which the health
// listener serves. Beyond that the standard OTEL_* variables decide. A signal is
// exported when its OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER is set (and
// not "none"), or when an OTLP endpoint is; with none of these, or with
// OTEL_SDK_DISABLED=true, nothing leaves the process. Exporters work in the
// background with bounded queues: one that is down or slow loses data, and
// delays no request and no start.
package telemetry
