package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"oncegate/lock"
)

// Gauges are what can be looked at but does not happen. Each function is called
// at every scrape and export, concurrently with anything; it answers at once,
// from memory, and never asks the store. Nil: there is no such figure.
type Gauges struct {
	// InHand is how many deliveries are in hand; InHandBytes is what their
	// bodies and answers hold.
	InHand, InHandBytes func() int64
	// Owed is how many settles and undos are kept in the journal.
	Owed func() int64
	// StoreUp reports whether the store answered when it was last asked.
	StoreUp func() bool
	// StoreFit reports whether new claims are made in the store: it was found
	// fit when it was last examined.
	StoreFit func() bool
	// StoreUnknown is how many weaknesses the store could not be asked about.
	StoreUnknown func() int64
	// Figures are those of the store, as last taken; nil where another replica
	// takes them, so that a sum over replicas is right.
	Figures func() *lock.Figures
	// Dropped is how much evidence was not written, since the start.
	Dropped func() int64
	// LogLost is how many lines of the log were lost, since the start.
	LogLost func() int64
	// EvidencePurged is when evidence past its retention was last removed, or there
	// was none; zero: never.
	EvidencePurged func() time.Time
}

// Observe starts to report g. Call it once.
func (t *Telemetry) Observe(g Gauges) error {
	return errors.Join(
		t.gauge("oncegate.in_hand", "{delivery}", "Deliveries in hand.", g.InHand),
		t.gauge("oncegate.in_hand.size", "By", "Bytes held for deliveries in hand.", g.InHandBytes),
		t.gauge("oncegate.journal.depth", "{write}", "Settles and undos that wait in the journal.", g.Owed),
		t.gauge("oncegate.store.up", "", "1 where the store answered when it was last asked.", truth(g.StoreUp)),
		t.gauge("oncegate.store.fit", "", "1 where the store was found fit to be claimed in, when it was last examined.", truth(g.StoreFit)),
		t.gauge("oncegate.store.unknown_checks", "{check}", "What the store could not be asked about, of what its promise hangs on.", g.StoreUnknown),
		t.claimGauge(g.Figures),
		t.scopeGauge(g.Figures),
		t.overGauge(g.Figures),
		t.moment("oncegate.purge.last_success.timestamp", "When what is past its retention was last removed from the store, or there was nothing to remove; from the replica that removes.", t.purgedAt),
		t.moment("oncegate.evidence.purge.last_success.timestamp", "When evidence past its retention was last removed, or there was none.", g.EvidencePurged),
		t.total("oncegate.evidence.dropped", "{delivery}", "Deliveries whose evidence was not written: more came than fits, or its store was out.", g.Dropped),
		t.total("oncegate.log.lost", "{line}", "Lines of the log that were lost: its reader was too slow, or took none.", g.LogLost),
	)
}

func truth(f func() bool) func() int64 {
	if f == nil {
		return nil
	}
	return func() int64 {
		if f() {
			return 1
		}
		return 0
	}
}

func (t *Telemetry) gauge(name, unit, about string, f func() int64) error {
	if f == nil {
		return nil
	}
	_, err := t.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(f())
			return nil
		}))
	return err
}

// total reports a figure that only grows.
func (t *Telemetry) total(name, unit, about string, f func() int64) error {
	if f == nil {
		return nil
	}
	_, err := t.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(about),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(f())
			return nil
		}))
	return err
}

// moment reports when something last happened, in seconds since 1970; nothing
// where it never did.
func (t *Telemetry) moment(name, about string, f func() time.Time) error {
	if f == nil {
		return nil
	}
	_, err := t.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(about),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if at := f(); !at.IsZero() {
				o.Observe(float64(at.UnixMilli()) / 1000)
			}
			return nil
		}))
	return err
}

// overGauge reports what is left of what is past its retention.
func (t *Telemetry) overGauge(f func() *lock.Figures) error {
	if f == nil {
		return nil
	}
	_, err := t.meter.Int64ObservableGauge("oncegate.records_past_retention", metric.WithUnit("{record}"),
		metric.WithDescription("Records past their retention that are still in the store, as last counted; from the replica that counts."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if figures := f(); figures != nil && figures.Surveyed {
				o.Observe(int64(figures.Over))
			}
			return nil
		}))
	return err
}

// claimGauge reports every state of every scope, those at zero too; what only a
// survey knows, when there was one. Scopes that no route has any more are one,
// _OTHER: what is unknown there would be forgotten.
func (t *Telemetry) claimGauge(f func() *lock.Figures) error {
	if f == nil {
		return nil
	}
	states := []lock.State{lock.StateRunning, lock.StateDone, lock.StateReleased, lock.StateUnknown, lock.StateTombstone}
	_, err := t.meter.Int64ObservableGauge("oncegate.claims", metric.WithUnit("{claim}"),
		metric.WithDescription("Claims in the store, by state, as last counted; from the replica that counts."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			figures := f()
			if figures == nil {
				return nil
			}
			scopes := t.labels.Load().scopes
			for _, state := range states {
				if !figures.Surveyed && state != lock.StateRunning && state != lock.StateUnknown {
					continue
				}
				observe := func(scope string, n int) {
					o.Observe(int64(n), metric.WithAttributes(attribute.String("scope", scope), attribute.String("state", state.String())))
				}
				for scope := range scopes {
					observe(scope, figures.Claims[lock.ScopeState{Scope: scope, State: state}])
				}
				rest := 0
				for at, n := range figures.Claims {
					if at.State == state && !scopes[at.Scope] {
						rest += n
					}
				}
				observe(other, rest)
			}
			return nil
		}))
	return err
}

// scopeGauge reports what waits for somebody, by scope.
func (t *Telemetry) scopeGauge(f func() *lock.Figures) error {
	if f == nil {
		return nil
	}
	unfinished, err := t.meter.Int64ObservableGauge("oncegate.unfinished_claims", metric.WithUnit("{claim}"),
		metric.WithDescription("Claims that are not done and whose sender has given up; from the replica that counts."))
	oldest, err2 := t.meter.Float64ObservableGauge("oncegate.unknown.oldest", metric.WithUnit("s"),
		metric.WithDescription("How long ago the claim that is unknown the longest became so; 0 where none is."))
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	_, err = t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		figures := f()
		if figures == nil {
			return nil
		}
		for scope := range t.labels.Load().scopes {
			at := metric.WithAttributes(attribute.String("scope", scope))
			o.ObserveInt64(unfinished, int64(figures.Unfinished[scope]), at)
			o.ObserveFloat64(oldest, figures.Unknown[scope].Seconds(), at)
		}
		return nil
	}, unfinished, oldest)
	return err
}
