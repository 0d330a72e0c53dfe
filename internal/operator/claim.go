package operator

import (
	"fmt"
	"time"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

// A Ref names a claim as it was shown.
type Ref struct {
	Scope   string       `json:"scope"`
	Digest  lock.Digest  `json:"digest"`
	Version lock.Version `json:"version"`
}

// A Claim is a record as operators see it.
type Claim struct {
	Namespace string       `json:"namespace"`
	Scope     string       `json:"scope"`
	Key       string       `json:"key"`
	Digest    lock.Digest  `json:"digest"`
	Version   lock.Version `json:"version"`
	// State is running, done, released, unknown, tombstone or alias; Absent where
	// there is no claim.
	State      string   `json:"state"`
	Reason     string   `json:"reason,omitempty"`
	Marks      []string `json:"marks,omitempty"`
	Attempt    int      `json:"attempt"`
	Unanswered int      `json:"unanswered,omitempty"`
	// Names is, for an alias, the digest of the event that it names.
	Names     string    `json:"names,omitempty"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Changed   time.Time `json:"changed"`
	// What is left, in seconds; negative: how long it has been over.
	LeaseLeft    *float64 `json:"lease_left,omitempty"`
	MayRunFor    *float64 `json:"may_run_for,omitempty"`
	KeptFor      *float64 `json:"kept_for,omitempty"`
	AnswerStatus int      `json:"answer_status,omitempty"`
	RequestKept  bool     `json:"request_kept,omitempty"`
	Payload      string   `json:"payload,omitempty"`
	Tags         []string `json:"tags,omitempty"`
}

// Ref names the claim as it is here.
func (c *Claim) Ref() Ref { return Ref{c.Scope, c.Digest, c.Version} }

// ClaimOf returns the record as operators see it, at this moment.
func ClaimOf(r *lock.Record, now time.Time) Claim {
	at := func(age time.Duration) time.Time { return now.Add(-age).UTC().Truncate(time.Millisecond) }
	c := Claim{
		Namespace: r.Namespace, Scope: r.Scope, Key: r.Text, Digest: r.Digest, Version: r.Version,
		State: r.State.String(), Reason: r.Reason, Marks: marks(r.Mark),
		Attempt: r.Attempt, Unanswered: r.Unanswered,
		FirstSeen: at(r.FirstSeen), LastSeen: at(r.LastSeen), Changed: at(r.Written),
		AnswerStatus: r.AnswerStatus, RequestKept: r.Request != nil, Tags: r.Tags,
	}
	if r.Role == lock.RoleAlias {
		c.State, c.Names = "alias", r.Names.String()
	}
	if r.Payload != (lock.Digest{}) {
		c.Payload = r.Payload.String()
	}
	switch r.State {
	case lock.StateRunning:
		c.LeaseLeft, c.MayRunFor = seconds(r.Lease), seconds(r.RunsUntil)
	case lock.StateUnknown:
		c.MayRunFor = seconds(r.RunsUntil)
	}
	if r.Expires() {
		c.KeptFor = seconds(r.Retain)
	}
	return c
}

// Absent is the state of a claim that is not there.
const Absent = "absent"

// absent says what evidence knows of an event that has no claim.
func absent(key lock.Key, entries []evidence.Entry) Claim {
	c := Claim{Namespace: key.Namespace, Scope: key.Scope, Digest: key.Digest, State: Absent}
	for i := range entries {
		e := &entries[i]
		if c.FirstSeen.IsZero() || e.First.Before(c.FirstSeen) {
			c.FirstSeen = e.First
		}
		if e.Last.After(c.LastSeen) {
			c.LastSeen, c.Changed = e.Last, e.Last
		}
		if e.Text != "" {
			c.Key = e.Text
		}
	}
	return c
}

func seconds(d time.Duration) *float64 {
	s := d.Round(time.Millisecond).Seconds()
	return &s
}

// marks names the facts about how a record came to its state.
func marks(m lock.Mark) (names []string) {
	for _, mark := range []struct {
		bit  lock.Mark
		name string
	}{
		{lock.MarkLate, "late"}, {lock.MarkOperator, "operator"}, {lock.MarkWitness, "witness"},
		{lock.MarkAcknowledged, "acknowledged"}, {lock.MarkDoubt, "doubt"},
	} {
		if m&mark.bit != 0 {
			names = append(names, mark.name)
		}
	}
	return names
}

// An Answer is a stored answer.
type Answer struct {
	Status int         `json:"status"`
	Header []HeaderRow `json:"header"`
	// Size is the body's, in bytes. Body is there where it was asked for.
	Size int    `json:"size"`
	Body []byte `json:"body,omitempty"`
	// Stub: the body was too large to be kept.
	Stub bool `json:"stub,omitempty"`
}

// A HeaderRow is one header line.
type HeaderRow struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// answerOf returns the record's answer; nil where it has none.
func answerOf(r *lock.Record, body bool) (*Answer, error) {
	if r.AnswerStatus == 0 {
		return nil, nil
	}
	stored, err := r.StoredAnswer()
	if err != nil {
		return nil, fmt.Errorf("%w; with encryption_keys, the key that it was stored under may be missing", err)
	}
	a := &Answer{Status: stored.Status, Header: []HeaderRow{}, Size: len(stored.Body), Stub: stored.Stub}
	for _, l := range stored.Header {
		a.Header = append(a.Header, HeaderRow(l))
	}
	if body {
		a.Body = stored.Body
	}
	return a, nil
}
