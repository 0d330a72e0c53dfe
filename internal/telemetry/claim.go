package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"oncegate/lock"
)

// Claim counts what the claim protocol did beside the answer to a delivery. It
// is what a gate's observer is set to; it returns at once.
func (t *Telemetry) Claim(e lock.Event) {
	ctx := context.Background()
	l := t.labels.Load()
	scope := func() options { return l.scope.get(l.scopeName(e.Scope)) }
	switch e.Kind {
	case lock.EventRenewed:
		t.renewals.Add(ctx, 1, scope().add...)
	case lock.EventFenced:
		t.fenced.Add(ctx, 1, scope().add...)
	case lock.EventLapsed:
		t.lapses.Add(ctx, 1, scope().add...)
	case lock.EventSecondRun:
		t.secondRuns.Add(ctx, 1, scope().add...)
	case lock.EventLate:
		t.late.Add(ctx, 1, scope().add...)
	case lock.EventOwed:
		t.owed.Add(ctx, 1)
	case lock.EventPaid:
		t.paid.Add(ctx, 1)
	case lock.EventMemoryHit:
		t.memoryHits.Add(ctx, 1)
	case lock.EventSwept:
		t.swept.Add(ctx, int64(e.N))
	case lock.EventPurged:
		t.purged.Add(ctx, int64(e.N))
		if e.Err == nil {
			t.lastPurge.Store(time.Now().UnixNano())
		}
	case lock.EventBackgroundErr:
		t.backgroundErrors.Add(ctx, 1)
	case lock.EventJournalError:
		t.journalErrors.Add(ctx, int64(e.N))
	case lock.EventWitness:
		t.witnessAnswers.Add(ctx, 1, l.witness.get(witnessKey{l.scopeName(e.Scope), e.Testimony}).add...)
	case lock.EventStoreError:
		t.storeErrors.Add(ctx, 1)
	case lock.EventWriteTrip:
		t.trip(ctx, l.trip.get("write"), e)
	case lock.EventReadTrip:
		t.trip(ctx, l.trip.get("read"), e)
	}
}

func (t *Telemetry) trip(ctx context.Context, op options, e lock.Event) {
	t.trips.Record(ctx, e.Took.Seconds(), op.record...)
	t.tripRecords.Record(ctx, int64(e.N), op.record...)
}

// purgedAt is when a purge last did what it had to; zero: never.
func (t *Telemetry) purgedAt() time.Time {
	if at := t.lastPurge.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// What labels come from that are not of a configuration.
var (
	testimonies = []lock.Testimony{lock.TestifyNothing, lock.TestifyYes, lock.TestifyNo, lock.TestifyRetry, lock.TestifyHold}
	verbs       = []lock.Verb{lock.VerbDone, lock.VerbReopen, lock.VerbRerun, lock.VerbRelease, lock.VerbForget}
)

// Reloaded counts a configuration that was taken over while running, or refused.
func (t *Telemetry) Reloaded(ok bool) { t.reloads.Add(context.Background(), 1, reloadResult(ok)) }

func reloadResult(ok bool) metric.MeasurementOption {
	word := "failed"
	if ok {
		word = "done"
	}
	return metric.WithAttributes(attribute.String("result", word))
}

// Decided counts an operator's decision that was written.
func (t *Telemetry) Decided(v lock.Verb) { t.decisions.Add(context.Background(), 1, verbLabel(v)) }

func verbLabel(v lock.Verb) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("verb", v.String()))
}
