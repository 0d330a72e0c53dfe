package operator

import (
	"context"
	"strings"
	"time"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

// A Life is all that is known of one event. Its claim is absent where evidence
// alone knows it: its route observes, or the claim is past its retention.
type Life struct {
	Claim  Claim   `json:"claim"`
	Answer *Answer `json:"answer,omitempty"`
	// Timeline is what happened, in the order in which it began; the last
	// MostTimeline of it.
	Timeline []Moment `json:"timeline"`
	// Evidence is false where none is kept, or none could be read: then the
	// timeline says nothing.
	Evidence bool `json:"evidence"`
	// EvidenceError says why it could not be read; empty where none is kept.
	EvidenceError string `json:"evidence_error,omitempty"`
}

// A Moment is one delivery in an event's life, several that are alike, or what
// an operator decided.
type Moment struct {
	At   time.Time `json:"at"`
	Last time.Time `json:"last"`
	// Count is how many deliveries it stands for.
	Count int `json:"count"`
	// Kind is delivery, decision, or witness: then Result is what it said.
	Kind   string `json:"kind"`
	Route  string `json:"route,omitempty"`
	Result string `json:"result"`
	Status int    `json:"status,omitempty"`
	// Duplicate: the event had been seen before; Late: more than five minutes
	// before.
	Duplicate bool `json:"duplicate,omitempty"`
	Late      bool `json:"late,omitempty"`
	evidence.Facts
}

// MostTimeline bounds a timeline.
const MostTimeline = 1000

// Show returns what is known of an event, its bodies where body says so. Its error
// is ErrNotFound or the store's.
func (d *Desk) Show(ctx context.Context, scope string, digest lock.Digest, body bool) (*Life, error) {
	lives, err := d.lives(ctx, []lock.Key{{Namespace: d.Namespace, Scope: scope, Digest: digest}}, body)
	if err != nil {
		return nil, err
	}
	return lives[0], nil
}

// ShowKey is Show for an event key, which each scope may know; and for
// scope:key, as Oncegate-Event and the logs write it.
func (d *Desk) ShowKey(ctx context.Context, scope, text string, body bool) ([]*Life, error) {
	keys := d.keys(scope, text)
	if len(keys) == 0 {
		return nil, ErrNotFound
	}
	return d.lives(ctx, keys, body)
}

// keys are those that an event key may stand for: one in each scope, or in the one
// that is named.
func (d *Desk) keys(scope, text string) (keys []lock.Key) {
	for _, s := range d.Scopes() {
		if scope == "" || s.Name == scope {
			keys = append(keys, lock.KeyOf(d.Namespace, s.Name, text))
		}
	}
	before, after, cut := strings.Cut(text, ":")
	switch {
	case scope != "" && len(keys) == 0:
		keys = append(keys, lock.KeyOf(d.Namespace, scope, text))
	case scope == "" && cut:
		keys = append(keys, lock.KeyOf(d.Namespace, before, after))
	}
	return keys
}

// lives returns what is known of the events with these keys, at least one.
func (d *Desk) lives(ctx context.Context, keys []lock.Key, body bool) (lives []*Life, err error) {
	records, err := d.Store.Read(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		life, err := d.life(ctx, keys[i], &records[i], body)
		if err != nil {
			return nil, err
		}
		if life.Claim.State != Absent || len(life.Timeline) > 0 {
			lives = append(lives, life)
		}
	}
	if len(lives) == 0 {
		return nil, ErrNotFound
	}
	return lives, nil
}

// life puts together what claim and evidence say of an event, either of which may
// be missing.
func (d *Desk) life(ctx context.Context, key lock.Key, r *lock.Record, body bool) (*Life, error) {
	answer, err := answerOf(r, body)
	if err != nil {
		return nil, err
	}
	life := &Life{Answer: answer, Timeline: []Moment{}}
	var entries []evidence.Entry
	if d.Evidence != nil {
		entries, err = d.Evidence.Find(ctx, evidence.Query{Namespace: d.Namespace, Scope: key.Scope, Digest: key.Digest, Limit: MostTimeline})
		if life.Evidence = err == nil; err != nil { // without it the claim still is what counts
			life.EvidenceError = err.Error()
		}
	}
	for i := range entries {
		life.Timeline = append(life.Timeline, momentOf(&entries[i], body))
	}
	if r.Exists() {
		life.Claim = ClaimOf(r, time.Now())
	} else {
		life.Claim = absent(key, entries)
	}
	return life, nil
}

func momentOf(e *evidence.Entry, body bool) Moment {
	m := Moment{
		At: e.First, Last: e.Last, Count: e.Count, Kind: "delivery", Route: e.Route, Result: e.Result, Status: e.Status,
		Duplicate: e.Duplicate, Late: e.Late, Facts: e.Facts,
	}
	switch e.Kind {
	case evidence.KindDecision:
		m.Kind = "decision"
	case evidence.KindWitness:
		m.Kind = "witness"
	}
	m.Text = "" // the claim says it
	if m.Answer != nil && !body {
		bare := *m.Answer
		bare.Body = nil
		m.Answer = &bare
	}
	return m
}
