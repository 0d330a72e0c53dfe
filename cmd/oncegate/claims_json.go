package main

import (
	"time"

	"oncegate/lock"
)

// A claim is a record as --json shows it. The moments are counted back by this
// host's clock from the ages that the store's clock gave.
type claim struct {
	Namespace  string    `json:"namespace"`
	Scope      string    `json:"scope"`
	Key        string    `json:"key"`
	Digest     string    `json:"digest"`
	State      string    `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	Marks      []string  `json:"marks,omitempty"`
	Attempt    int       `json:"attempt"`
	Unanswered int       `json:"unanswered,omitempty"`
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	Changed    time.Time `json:"changed"`
	// What is left, in seconds.
	LeaseLeft    *float64 `json:"lease_left,omitempty"`
	MayRunFor    *float64 `json:"may_run_for,omitempty"`
	KeptFor      *float64 `json:"kept_for,omitempty"`
	AnswerStatus int      `json:"answer_status,omitempty"`
	RequestKept  bool     `json:"request_kept,omitempty"`
	Payload      string   `json:"payload,omitempty"`
	Tags         []string `json:"tags,omitempty"`
}

func claimOf(r *lock.Record, now time.Time) claim {
	at := func(age time.Duration) time.Time { return now.Add(-age).UTC().Truncate(time.Millisecond) }
	c := claim{
		Namespace: r.Namespace, Scope: r.Scope, Key: r.Text, Digest: r.Digest.String(),
		State: stateText(r), Reason: r.Reason, Marks: marks(r.Mark),
		Attempt: r.Attempt, Unanswered: r.Unanswered,
		FirstSeen: at(r.FirstSeen), LastSeen: at(r.LastSeen), Changed: at(r.Written),
		AnswerStatus: r.AnswerStatus, RequestKept: r.Request != nil, Tags: r.Tags,
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
