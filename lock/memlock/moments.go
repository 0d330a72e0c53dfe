package memlock

import (
	"time"

	"oncegate/lock"
)

// moments are the times of one record, in microseconds of the store's clock.
// Zero due and expires mean "none".
type moments struct {
	lease, runs          int64
	due, expires         int64
	first, last, written int64
}

// momentsOf returns the times of a record that c writes at now, where old are the
// times of the record that c replaces. They are not looked at where c expects
// that there is none.
func momentsOf(c *lock.Change, old moments, now int64) moments {
	n := &c.Next
	m := moments{
		lease:   now + n.Lease.Microseconds(),
		runs:    now + n.RunsUntil.Microseconds(),
		first:   now,
		last:    now,
		written: now,
	}
	if n.Due != 0 {
		m.due = now + n.Due.Microseconds()
	}
	if n.Expires() {
		m.expires = now + n.Retain.Microseconds()
	}
	if c.Expect != lock.None {
		m.first = old.first
		if !c.Seen {
			m.last = old.last
		}
	}
	return m
}

// over reports whether the record is past its retention.
func (m moments) over(now int64) bool { return m.expires != 0 && m.expires <= now }

// tell sets the durations of r to what is left, or how long ago, at now.
func (m moments) tell(r *lock.Record, now int64) {
	r.Lease = micros(m.lease - now)
	r.RunsUntil = micros(m.runs - now)
	r.Due = some(m.due, now)
	r.Retain = some(m.expires, now)
	r.FirstSeen = micros(now - m.first)
	r.LastSeen = micros(now - m.last)
	r.Written = micros(now - m.written)
}

// some returns what is left until a moment that may be none. Only none is
// zero: a moment that is just now is told as one microsecond ago.
func some(moment, now int64) time.Duration {
	switch moment {
	case 0:
		return 0
	case now:
		return -time.Microsecond
	}
	return micros(moment - now)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
