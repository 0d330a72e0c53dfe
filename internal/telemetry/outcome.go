package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"oncegate/lock"
)

// An Outcome says all about one delivery on a route: what it was, what was
// decided, what was answered. It is a plain value; fields that do not apply are
// zero.
type Outcome struct {
	Route, Provider string
	// Scope is what the claim was made under; empty: the route's name.
	Scope string
	// Key is the event key, empty where none was extracted. In the log it is
	// cut at 256 bytes.
	Key string
	// MoreKeys are those of a batch's other events. Only evidence has them.
	MoreKeys []string
	Result   Result
	// Status is what the sender was answered; 0 where nobody was left to answer.
	Status int
	// Attempt numbers the attempt that this delivery made, or whose answer it got.
	Attempt int
	// AppStatus is what the app answered to it; 0 where it was not asked, or gave
	// no answer.
	AppStatus int
	// AppAnswer is what of that answer may be kept, AppSize how many bytes of its
	// body came, or were read where it was too large to keep. Only evidence has
	// them.
	AppAnswer *lock.Answer
	AppSize   int
	// At is when the delivery arrived, Remote its sender's address (behind
	// trusted proxies), Retry what its headers say of which try it is, Payload
	// the digest of its body. Only evidence has them.
	At      time.Time
	Remote  netip.Addr
	Retry   string
	Payload lock.Digest
	// SecondRun says that this delivery made an attempt after one that ended
	// unknown. It is counted by the claim protocol's event, not from here, so
	// that an attempt which dies on the way is counted too.
	SecondRun bool
	// Duplicate says that the event had been seen before; Age is how long ago
	// for the first time, zero where that is not known.
	Duplicate bool
	Age       time.Duration
	// Differs says that the payload is another than the one that the claim was
	// begun with.
	Differs bool
	// Repeats is how many events of a batch were done and reached the app again,
	// beside new ones; LeftOut is how many did not, since the route splits batches.
	Repeats, LeftOut int
	// Unproven says that nothing shows who sent it: its route checks no signature,
	// and only observes.
	Unproven bool
	// Refusal is the result word that enforcing would have refused an observed
	// delivery with; empty: none.
	Refusal Result
	// Slow says that the attempt's answer came when its sender had stopped waiting
	// for it, so that a duplicate is to be expected.
	Slow bool
	// Stub says that the replayed answer had lost its body.
	Stub bool
	// How long the delivery waited for another's attempt, and how long the
	// claim, the app and the settle took. Zero: it did not come to that.
	Waited, Claim, Upstream, Settle time.Duration
	// Total is the time from the request's head to the answer's end.
	Total time.Duration
	Error ErrorClass
	// Detail is the text of one of oncegate's own errors. It must hold nothing
	// out of the request but names. It is cut at 256 bytes.
	Detail string
}

// Record is the one sink: from o it makes the attributes of the span in ctx, the
// metrics, the log line and the evidence. It does not block on any exporter.
func (t *Telemetry) Record(ctx context.Context, o Outcome) {
	t.count(ctx, &o)
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(o.attributes()...)
	}
	t.print(ctx, &o, span.SpanContext())
	if t.evidence != nil {
		t.evidence(&o)
	}
}

// count makes the metrics.
func (t *Telemetry) count(ctx context.Context, o *Outcome) {
	l := t.labels.Load()
	route := l.routeName(o.Route)
	both := l.outcome.get(outcomeKey{route, l.resultWord(o.Result)})
	one := l.route.get(route)
	t.deliveries.Add(ctx, 1, both.add...)
	if o.Refusal != "" {
		t.refusals.Add(ctx, 1, l.outcome.get(outcomeKey{route, l.resultWord(o.Refusal)}).add...)
	}
	if o.Duplicate {
		t.duplicates.Add(ctx, 1, one.add...)
		if o.Age > 0 {
			t.duplicateAge.Record(ctx, o.Age.Seconds(), one.record...)
		}
	}
	if o.Differs {
		t.differing.Add(ctx, 1, one.add...)
	}
	if o.Repeats > 0 {
		t.repeats.Add(ctx, int64(o.Repeats), one.add...)
	}
	if o.Slow {
		t.slow.Add(ctx, 1, one.add...)
	}
	if o.Waited > 0 {
		t.waits.Record(ctx, o.Waited.Seconds(), both.record...)
	}
	if o.Claim > 0 {
		t.claims.Record(ctx, o.Claim.Seconds(), one.record...)
	}
	if o.Upstream > 0 {
		t.upstream.Record(ctx, o.Upstream.Seconds(), one.record...)
	}
	if o.Settle > 0 {
		t.settles.Record(ctx, o.Settle.Seconds(), one.record...)
	}
}

// attributes returns what the span of the delivery carries.
func (o *Outcome) attributes() []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String("oncegate.route", o.Route),
		attribute.String("oncegate.result", string(o.Result)),
	}
	if o.Provider != "" {
		attrs = append(attrs, attribute.String("oncegate.provider", o.Provider))
	}
	if o.Key != "" {
		attrs = append(attrs, attribute.String("oncegate.key", Cut(o.Key)))
	}
	if o.Attempt > 0 {
		attrs = append(attrs, attribute.Int("oncegate.attempt", o.Attempt))
	}
	if o.SecondRun {
		attrs = append(attrs, attribute.Bool("oncegate.second_run", true))
	}
	if o.Duplicate {
		attrs = append(attrs, attribute.Bool("oncegate.duplicate", true))
	}
	if o.Differs {
		attrs = append(attrs, attribute.Bool("oncegate.differs", true))
	}
	return attrs
}

// print writes the log line.
func (t *Telemetry) print(ctx context.Context, o *Outcome, span trace.SpanContext) {
	level := o.Result.level()
	if o.SecondRun {
		level = max(level, slog.LevelWarn)
	}
	if !t.log.Enabled(ctx, level) {
		return
	}
	var room [24]slog.Attr
	attrs := append(room[:0], slog.String("route", o.Route), slog.String("result", string(o.Result)))
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	flag := func(name string, value bool) {
		if value {
			attrs = append(attrs, slog.Bool(name, true))
		}
	}
	number := func(name string, value int) {
		if value != 0 {
			attrs = append(attrs, slog.Int(name, value))
		}
	}
	// Whole microseconds: a fraction costs the JSON handler an allocation each.
	took := func(name string, d time.Duration) {
		if d > 0 {
			attrs = append(attrs, slog.Int64(name, d.Microseconds()))
		}
	}
	number("status", o.Status)
	text("key", Cut(o.Key))
	number("attempt", o.Attempt)
	text("provider", o.Provider)
	if o.Scope != o.Route {
		text("scope", o.Scope)
	}
	flag("duplicate", o.Duplicate)
	if o.Age > 0 {
		attrs = append(attrs, slog.Int64("age_s", int64(o.Age/time.Second)))
	}
	flag("second_run", o.SecondRun)
	flag("differs", o.Differs)
	number("repeats", o.Repeats)
	number("left_out", o.LeftOut)
	flag("slow", o.Slow)
	flag("stub", o.Stub)
	took("total_us", o.Total)
	took("waited_us", o.Waited)
	took("claim_us", o.Claim)
	took("upstream_us", o.Upstream)
	took("settle_us", o.Settle)
	text("refusal", string(o.Refusal))
	text("error", string(o.Error))
	text("detail", Cut(o.Detail))
	if span.IsValid() {
		text("trace_id", span.TraceID().String())
	}
	t.log.LogAttrs(ctx, level, "delivery", attrs...)
}

// maxText bounds a text in a log line or a span, in bytes.
const maxText = 256

// Cut bounds a text to 256 bytes, and says how long it was.
func Cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:maxText-32], ""), len(s))
}
