package telemetry

import (
	"context"
	"errors"

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
	// Claims is how many claims there are by scope and state, as last counted.
	Claims func() map[lock.ScopeState]int
}

// Observe starts to report g. Call it once.
func (t *Telemetry) Observe(g Gauges) error {
	return errors.Join(
		t.gauge("oncegate.in_hand", "{delivery}", "Deliveries in hand.", g.InHand),
		t.gauge("oncegate.in_hand.size", "By", "Bytes held for deliveries in hand.", g.InHandBytes),
		t.gauge("oncegate.journal.depth", "{write}", "Settles and undos that wait in the journal.", g.Owed),
		t.gauge("oncegate.store.up", "", "1 where the store answered when it was last asked.", truth(g.StoreUp)),
		t.claimGauge(g.Claims),
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

// claimGauge reports every state of every scope, those at zero too.
func (t *Telemetry) claimGauge(f func() map[lock.ScopeState]int) error {
	if f == nil {
		return nil
	}
	states := []lock.State{lock.StateRunning, lock.StateDone, lock.StateReleased, lock.StateUnknown, lock.StateTombstone}
	_, err := t.meter.Int64ObservableGauge("oncegate.claims", metric.WithUnit("{claim}"),
		metric.WithDescription("Claims in the store, by state, as last counted."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			counted := f()
			for scope := range t.labels.Load().scopes {
				for _, state := range states {
					o.Observe(int64(counted[lock.ScopeState{Scope: scope, State: state}]), metric.WithAttributes(
						attribute.String("scope", scope), attribute.String("state", state.String())))
				}
			}
			return nil
		}))
	return err
}
