package locktest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"oncegate/lock"
)

// A place is one case's fixture, opened once, with short verbs that fail the
// test on any error.
type place struct {
	testing.TB
	f Fixture
	s Store
}

// another opens the fixture once more, as another process would.
func (p *place) another() *place {
	p.Helper()
	return &place{TB: p.TB, f: p.f, s: open(p.TB, p.f)}
}

func (p *place) pass(d time.Duration) {
	p.Helper()
	p.f.Pass(p.TB, d)
}

// send applies one change and returns what stands.
func (p *place) send(c lock.Change) lock.Result {
	p.Helper()
	return p.sendAll(c)[0]
}

func (p *place) sendAll(batch ...lock.Change) []lock.Result {
	p.Helper()
	results, err := p.s.Apply(p.Context(), batch)
	if err != nil {
		p.Fatalf("apply: %v", err)
	}
	if len(results) != len(batch) {
		p.Fatalf("apply: %d results for %d changes", len(results), len(batch))
	}
	for i, r := range results {
		if r.Err != nil {
			p.Fatalf("apply: change %d: %v", i, r.Err)
		}
		if r.Standing.Exists() && r.Standing.Key != batch[i].Next.Key {
			p.Fatalf("apply: result %d stands under another key", i)
		}
	}
	return results
}

// applied sends a change that must be applied, and returns what stands.
func (p *place) applied(c lock.Change) lock.Record {
	p.Helper()
	r := p.send(c)
	if !r.Applied(c) {
		p.Fatalf("change refused; what stands: %s", brief(r.Standing))
	}
	return r.Standing
}

// refused sends a change that must not be applied, and checks that what stands
// is what stood.
func (p *place) refused(c lock.Change, stood lock.Record) {
	p.Helper()
	r := p.send(c)
	if r.Applied(c) {
		p.Fatalf("change applied over %s", brief(stood))
	}
	p.same(r.Standing, stood)
	p.same(p.read(c.Next.Key), stood)
}

func (p *place) read(k lock.Key) lock.Record {
	p.Helper()
	return p.readAll(k)[0]
}

func (p *place) readAll(keys ...lock.Key) []lock.Record {
	p.Helper()
	records, err := p.s.Read(p.Context(), keys)
	if err != nil {
		p.Fatalf("read: %v", err)
	}
	if len(records) != len(keys) {
		p.Fatalf("read: %d records for %d keys", len(records), len(keys))
	}
	return records
}

// same checks that two records are equal: durations nearly, all else exactly.
func (p *place) same(got, want lock.Record) {
	p.Helper()
	if d := diff(got, want); d != "" {
		p.Fatalf("record differs: %s", d)
	}
}

// slack is how far durations may differ.
const slack = 40 * time.Second

func diff(got, want lock.Record) string {
	for _, d := range []struct {
		name      string
		got, want time.Duration
	}{
		{"lease", got.Lease, want.Lease},
		{"runs until", got.RunsUntil, want.RunsUntil},
		{"retain", got.Retain, want.Retain},
		{"due", got.Due, want.Due},
		{"first seen", got.FirstSeen, want.FirstSeen},
		{"last seen", got.LastSeen, want.LastSeen},
		{"written", got.Written, want.Written},
	} {
		if (d.got - d.want).Abs() > slack {
			return fmt.Sprintf("%s is %v, not %v", d.name, d.got, d.want)
		}
	}
	for _, d := range []struct {
		name      string
		got, want any
	}{
		{"key", got.Key, want.Key},
		{"text", got.Text, want.Text},
		{"role", got.Role, want.Role},
		{"names", got.Names, want.Names},
		{"state", got.State, want.State},
		{"mark", got.Mark, want.Mark},
		{"reason", got.Reason, want.Reason},
		{"attempt", got.Attempt, want.Attempt},
		{"unanswered", got.Unanswered, want.Unanswered},
		{"token", got.Token, want.Token},
		{"version", got.Version, want.Version},
		{"group", got.Group, want.Group},
		{"deliveries", got.Deliveries, want.Deliveries},
		{"answer status", got.AnswerStatus, want.AnswerStatus},
		{"payload", got.Payload, want.Payload},
	} {
		if d.got != d.want {
			return fmt.Sprintf("%s is %.80v, not %.80v", d.name, d.got, d.want)
		}
	}
	for _, d := range []struct {
		name      string
		got, want []byte
	}{
		{"answer header", got.AnswerHeader, want.AnswerHeader},
		{"answer body", got.AnswerBody, want.AnswerBody},
		{"request", got.Request, want.Request},
	} {
		if !bytes.Equal(d.got, d.want) {
			return fmt.Sprintf("%s has %d bytes that differ from %d", d.name, len(d.got), len(d.want))
		}
	}
	if !slices.Equal(got.Tags, want.Tags) {
		return fmt.Sprintf("tags are %q, not %q", got.Tags, want.Tags)
	}
	return ""
}

func brief(r lock.Record) string {
	if !r.Exists() {
		return "no record"
	}
	return fmt.Sprintf("%v, attempt %d, version %x", r.State, r.Attempt, r.Version[:4])
}
