// Package columns says how the SQL stores lay a record out in a row: which
// columns there are, in which order, and how their values are encoded.
//
// Each store writes its own SQL, in its own dialect; what they share is this
// order. First the columns that are taken from a record as they are, in the
// order of Plain, then its times. Written, times are offsets from now; read,
// they are what is left from now, or, of the last three, how long ago, all in
// microseconds by the store's clock.
package columns

import (
	"fmt"
	"time"

	"oncegate/lock"
)

// Plain are the names of the columns without times: those of the key, then the
// others.
const (
	Key   = `namespace, scope, digest`
	Other = `key_text, role, names, state, mark, reason, attempt, unanswered, token, version, group_key, deliveries,
		answer_status, answer_header, answer_body, request, payload, tags`
	Plain = Key + `, ` + Other

	KeyCount   = 3
	OtherCount = 18
)

// Args returns the values of the columns of Plain.
func Args(n *lock.Record) []any {
	return []any{
		n.Namespace, n.Scope, n.Digest[:], n.Text, int64(n.Role), digest(n.Names), int64(n.State), int64(n.Mark),
		n.Reason, int64(n.Attempt), int64(n.Unanswered), n.Token[:], n.Version[:], n.Group, int64(n.Deliveries),
		int64(n.AnswerStatus), blob(n.AnswerHeader), blob(n.AnswerBody), blob(n.Request), digest(n.Payload), blob(Tags(n.Tags)),
	}
}

// Offsets returns lease, runs until, due and expiry as offsets from now in
// microseconds; nil where there is none of the last two.
func Offsets(n *lock.Record) (lease, runs int64, due, expires *int64) {
	if n.Due != 0 {
		due = new(n.Due.Microseconds())
	}
	if n.Expires() {
		expires = new(n.Retain.Microseconds())
	}
	return n.Lease.Microseconds(), n.RunsUntil.Microseconds(), due, expires
}

// A Row is one row while it is being read.
type Row struct {
	r                                   lock.Record
	digest, names, token, version       []byte
	payload, tags                       []byte
	role, state, mark                   int64
	attempt, unanswered, deliveries     int64
	status                              int64
	lease, runs, first, last, writtenAt int64
	due, expires                        *int64
}

// Dest returns where to scan the columns of Plain, and then lease, runs until,
// due, expiry, first seen, last seen and written.
func (w *Row) Dest() []any {
	r := &w.r
	return []any{
		&r.Namespace, &r.Scope, &w.digest, &r.Text, &w.role, &w.names, &w.state, &w.mark, &r.Reason, &w.attempt, &w.unanswered,
		&w.token, &w.version, &r.Group, &w.deliveries, &w.status, &r.AnswerHeader, &r.AnswerBody, &r.Request, &w.payload, &w.tags,
		&w.lease, &w.runs, &w.due, &w.expires, &w.first, &w.last, &w.writtenAt,
	}
}

// Over reports whether the record that was scanned is past its retention.
func (w *Row) Over() bool { return w.expires != nil && *w.expires <= 0 }

// Record returns the record that was scanned. An error says that the row was
// not written by oncegate.
func (w *Row) Record() (lock.Record, error) {
	r := w.r
	for _, f := range []struct {
		name     string
		to, from []byte
		optional bool
	}{
		{"digest", r.Digest[:], w.digest, false},
		{"version", r.Version[:], w.version, false},
		{"token", r.Token[:], w.token, false},
		{"names", r.Names[:], w.names, true},
		{"payload", r.Payload[:], w.payload, true},
	} {
		if len(f.from) != len(f.to) && !(f.optional && f.from == nil) {
			return lock.Record{}, fmt.Errorf("column %s holds %d bytes instead of %d: %w", f.name, len(f.from), len(f.to), lock.ErrUnfit)
		}
		copy(f.to, f.from)
	}
	var err error
	if r.Tags, err = ParseTags(w.tags); err != nil {
		return lock.Record{}, err
	}
	r.Role, r.State, r.Mark = lock.Role(w.role), lock.State(w.state), lock.Mark(w.mark)
	r.Attempt, r.Unanswered, r.Deliveries = int(w.attempt), int(w.unanswered), int(w.deliveries)
	r.AnswerStatus = int(w.status)
	r.Lease, r.RunsUntil = micros(w.lease), micros(w.runs)
	r.Due, r.Retain = some(w.due), some(w.expires)
	r.FirstSeen, r.LastSeen, r.Written = micros(w.first), micros(w.last), micros(w.writtenAt)
	return r, nil
}

// Standing returns the record as an answer to a change that was applied: what
// was asked, with the ages that the store keeps.
func Standing(c *lock.Change, first, last int64) lock.Record {
	r := c.Next
	r.FirstSeen, r.LastSeen, r.Written = micros(first), micros(last), 0
	if !r.Expires() {
		r.Retain = 0
	}
	return r
}

// some tells a moment that may be none. Only none is zero: a moment that is
// just now is told as one microsecond ago.
func some(left *int64) time.Duration {
	switch {
	case left == nil:
		return 0
	case *left == 0:
		return -time.Microsecond
	}
	return micros(*left)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// digest is NULL where there is none, to save the room.
func digest(d lock.Digest) any {
	if d == (lock.Digest{}) {
		return nil
	}
	return d[:]
}

// blob is NULL where it is empty, for some databases take one for the other.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}
