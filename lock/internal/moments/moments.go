// Package moments turns the durations of a record into moments of a store's
// clock, and back.
//
// It serves the stores that judge by a clock in this process. A moment is a
// number of microseconds; where the count starts is the store's affair.
package moments

import (
	"time"

	"oncegate/lock"
)

// Moments are the times of one record. Zero Due and Expires mean "none".
type Moments struct {
	Lease, Runs          int64
	Due, Expires         int64
	First, Last, Written int64
}

// Next returns the times of a record that c writes at now, where old are the
// times of the record that c replaces. They are not looked at where c expects
// that there is none.
func Next(c *lock.Change, old Moments, now int64) Moments {
	n := &c.Next
	m := Moments{
		Lease:   now + n.Lease.Microseconds(),
		Runs:    now + n.RunsUntil.Microseconds(),
		First:   now,
		Last:    now,
		Written: now,
	}
	if n.Due != 0 {
		m.Due = now + n.Due.Microseconds()
	}
	if n.Expires() {
		m.Expires = now + n.Retain.Microseconds()
	}
	if c.Expect != lock.None {
		m.First = old.First
		if !c.Seen {
			m.Last = old.Last
		}
	}
	return m
}

// Over reports whether the record is past its retention.
func (m Moments) Over(now int64) bool { return m.Expires != 0 && m.Expires <= now }

// Tell sets the durations of r to what is left, or how long ago, at now.
func (m Moments) Tell(r *lock.Record, now int64) {
	r.Lease = micros(m.Lease - now)
	r.RunsUntil = micros(m.Runs - now)
	r.Due = Some(m.Due, now)
	r.Retain = Some(m.Expires, now)
	r.FirstSeen = micros(now - m.First)
	r.LastSeen = micros(now - m.Last)
	r.Written = micros(now - m.Written)
}

// Some returns what is left until a moment that may be none. Only none is
// zero: a moment that is just now is told as one microsecond ago.
func Some(moment, now int64) time.Duration {
	switch moment {
	case 0:
		return 0
	case now:
		return -time.Microsecond
	}
	return micros(moment - now)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
