package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are what is counted and timed. Names are OpenTelemetry's; the
// scraped ones follow from them (oncegate.deliveries is
// oncegate_deliveries_total, a duration in "s" ends in _seconds).
type instruments struct {
	deliveries   metric.Int64Counter
	duplicates   metric.Int64Counter
	refusals     metric.Int64Counter
	differing    metric.Int64Counter
	slow         metric.Int64Counter
	repeats      metric.Int64Counter
	duplicateAge metric.Float64Histogram
	waits        metric.Float64Histogram
	claims       metric.Float64Histogram
	upstream     metric.Float64Histogram
	settles      metric.Float64Histogram

	renewals         metric.Int64Counter
	fenced           metric.Int64Counter
	lapses           metric.Int64Counter
	secondRuns       metric.Int64Counter
	late             metric.Int64Counter
	owed             metric.Int64Counter
	paid             metric.Int64Counter
	memoryHits       metric.Int64Counter
	swept            metric.Int64Counter
	purged           metric.Int64Counter
	backgroundErrors metric.Int64Counter
	storeErrors      metric.Int64Counter
	journalErrors    metric.Int64Counter
	witnessAnswers   metric.Int64Counter
	reloads          metric.Int64Counter
	decisions        metric.Int64Counter
	trips            metric.Float64Histogram
	tripRecords      metric.Int64Histogram

	server metric.Float64Histogram
	client metric.Float64Histogram
}

// A maker makes instruments and keeps what went wrong.
type maker struct {
	meter metric.Meter
	errs  []error
}

func (m *maker) counter(name, unit, about string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) seconds(name string, bounds []float64, about string) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	return h
}

func newInstruments(meter metric.Meter) (instruments, error) {
	// Bucket bounds, in seconds but for batch.
	var (
		store   = []float64{0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}
		app     = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
		wait    = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30}
		age     = []float64{1, 10, 60, 300, 1800, 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400, 14 * 86400, 35 * 86400}
		batch   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}
		request = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10} // as the conventions recommend
	)
	m := &maker{meter: meter}
	i := instruments{
		deliveries:   m.counter("oncegate.deliveries", "{delivery}", "Deliveries on a route, by the result word they ended with."),
		duplicates:   m.counter("oncegate.duplicates", "{delivery}", "Deliveries of an event that had been seen before."),
		refusals:     m.counter("oncegate.observed_refusals", "{delivery}", "Observed deliveries that enforcing would have refused, by the result word they would have got."),
		differing:    m.counter("oncegate.differing_payloads", "{delivery}", "Deliveries whose payload was another than the one the claim was begun with."),
		repeats:      m.counter("oncegate.batch.repeats", "{event}", "Events of batches that were done and reached the app again, beside new ones."),
		slow:         m.counter("oncegate.slow_answers", "{answer}", "Answers to attempts that came when the sender had stopped waiting, so that a duplicate is to be expected."),
		duplicateAge: m.seconds("oncegate.duplicate.age", age, "Time from the first delivery of an event to a duplicate of it."),
		waits:        m.seconds("oncegate.wait.duration", wait, "Time a delivery waited for another's attempt, by the result word it ended with."),
		claims:       m.seconds("oncegate.claim.duration", store, "Time to begin or read a claim."),
		upstream:     m.seconds("oncegate.upstream.duration", app, "Time from sending an attempt to the end of the app's answer."),
		settles:      m.seconds("oncegate.settle.duration", store, "Time to settle an attempt."),

		renewals:         m.counter("oncegate.renewals", "{write}", "Leases renewed."),
		fenced:           m.counter("oncegate.fenced_writes", "{write}", "Writes of an attempt that found another's claim, and changed nothing."),
		lapses:           m.counter("oncegate.lapses", "{claim}", "Running claims found without a lease."),
		secondRuns:       m.counter("oncegate.possible_second_runs", "{attempt}", "Attempts begun after an earlier one of the same claim ended unknown."),
		late:             m.counter("oncegate.late_answers", "{answer}", "2xx answers written as done after their attempt was fenced."),
		owed:             m.counter("oncegate.owed", "{write}", "Settles and undos that could not be written in time."),
		paid:             m.counter("oncegate.paid", "{write}", "Owed settles and undos that were written or settled otherwise."),
		memoryHits:       m.counter("oncegate.memory_hits", "{delivery}", "Replays that needed no store."),
		swept:            m.counter("oncegate.swept", "{claim}", "Lapsed claims that the sweep wrote as unknown."),
		purged:           m.counter("oncegate.purged", "{record}", "Records removed at the end of their retention."),
		backgroundErrors: m.counter("oncegate.background_errors", "{error}", "Sweeps and purges that failed."),
		storeErrors:      m.counter("oncegate.store.errors", "{error}", "Round trips to the store that failed."),
		journalErrors:    m.counter("oncegate.journal.errors", "{write}", "Owed writes that could not be kept on disk: memory alone has them."),
		witnessAnswers:   m.counter("oncegate.witness.answers", "{answer}", "Answers of witnesses: yes, no, and those that settle nothing."),
		reloads:          m.counter("oncegate.config.reloads", "{reload}", "Configurations that were taken over while running, or refused."),
		decisions:        m.counter("oncegate.operator.decisions", "{decision}", "Operators' decisions that were written, by verb; through the API of this process."),
		trips:            m.seconds("oncegate.store.trip.duration", store, "Time of one round trip to the store."),

		server: m.seconds("http.server.request.duration", request, "Duration of HTTP server requests."),
		client: m.seconds("http.client.request.duration", request, "Duration of HTTP client requests."),
	}
	var err error
	i.tripRecords, err = meter.Int64Histogram("oncegate.store.trip.records", metric.WithUnit("{record}"),
		metric.WithDescription("Changes or keys in one round trip to the store."),
		metric.WithExplicitBucketBoundaries(batch...))
	return i, errors.Join(append(m.errs, err)...)
}

// SetRoutes tells which routes there are, and where what passes through goes.
// Until then every route counts as "_OTHER". It may be called again when the
// configuration changes; what was counted stays.
//
// Counters of a route and a scope appear at once, as zero, so that an alert sees
// their first increase.
func (t *Telemetry) SetRoutes(passing Upstream, routes []Route) {
	l := newLabels(passing, routes)
	ctx := context.Background()
	for name := range l.routes {
		for _, word := range Results() {
			t.deliveries.Add(ctx, 0, l.outcome.get(outcomeKey{name, word}).add...)
		}
		for _, word := range []Result{ResultUnverified, ResultUnkeyed, ResultMalformed} {
			t.refusals.Add(ctx, 0, l.outcome.get(outcomeKey{name, word}).add...)
		}
		for _, c := range []metric.Int64Counter{t.duplicates, t.differing, t.repeats, t.slow} {
			c.Add(ctx, 0, l.route.get(name).add...)
		}
	}
	for name := range l.scopes {
		for _, said := range testimonies {
			t.witnessAnswers.Add(ctx, 0, l.witness.get(witnessKey{name, said}).add...)
		}
		for _, c := range []metric.Int64Counter{t.renewals, t.fenced, t.lapses, t.secondRuns, t.late} {
			c.Add(ctx, 0, l.scope.get(name).add...)
		}
	}
	t.labels.Store(l)
}

// zero makes the counters without labels appear.
func (i *instruments) zero(ctx context.Context) {
	for _, c := range []metric.Int64Counter{i.owed, i.paid, i.memoryHits, i.swept, i.purged, i.backgroundErrors, i.storeErrors, i.journalErrors} {
		c.Add(ctx, 0)
	}
	for _, ok := range []bool{true, false} {
		i.reloads.Add(ctx, 0, reloadResult(ok))
	}
	for _, verb := range verbs {
		i.decisions.Add(ctx, 0, verbLabel(verb))
	}
}
