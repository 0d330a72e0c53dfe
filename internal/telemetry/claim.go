package telemetry

import (
	"context"

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
	case lock.EventBackgroundErr:
		t.backgroundErrors.Add(ctx, 1)
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
