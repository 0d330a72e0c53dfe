package locktest

import (
	"crypto/sha256"
	"time"

	"oncegate/lock"
)

const (
	lease    = 10 * time.Minute
	appLimit = 20 * time.Minute
	retain   = 24 * time.Hour
)

// key returns the key of an event in the suite's own namespace and scope.
func key(text string) lock.Key { return lock.KeyOf("suite", "orders", text) }

// begin returns the change that begins the first attempt of an event.
func begin(text string) lock.Change {
	return lock.Change{
		Seen: true,
		Next: lock.Record{
			Key:        key(text),
			Text:       text,
			State:      lock.StateRunning,
			Attempt:    1,
			Token:      lock.NewToken(),
			Version:    lock.NewVersion(),
			Lease:      lease,
			RunsUntil:  lease + appLimit,
			Deliveries: 1,
			Payload:    sha256.Sum256([]byte(text)),
			Tags:       []string{"order=" + text},
		},
	}
}

// next returns the change that makes edit's record of r.
func next(r lock.Record, edit func(*lock.Record)) lock.Change {
	n := r
	n.Version = lock.NewVersion()
	edit(&n)
	return lock.Change{Expect: r.Version, Next: n}
}

func renewed(r lock.Record) lock.Change {
	return next(r, func(n *lock.Record) { n.Lease, n.RunsUntil = lease, lease+appLimit })
}

// done settles an attempt that was answered with body.
func done(r lock.Record, body string) lock.Change {
	return next(r, func(n *lock.Record) {
		n.State, n.Reason = lock.StateDone, lock.ReasonAnswered
		n.Lease, n.RunsUntil, n.Retain = 0, 0, retain
		n.AnswerStatus, n.AnswerHeader, n.AnswerBody = 200, []byte("h"), []byte(body)
	})
}

func released(r lock.Record) lock.Change {
	return next(r, func(n *lock.Record) {
		n.State, n.Reason = lock.StateReleased, lock.ReasonUnsent
		n.Lease, n.RunsUntil, n.Retain = 0, 0, retain
	})
}

// unknown settles an attempt whose outcome nobody knows.
func unknown(r lock.Record) lock.Change {
	return next(r, func(n *lock.Record) {
		n.State, n.Reason = lock.StateUnknown, lock.ReasonLapsed
		n.Mark |= lock.MarkDoubt
		n.Unanswered++
	})
}

// tombstone forgets a record that is at rest.
func tombstone(r lock.Record) lock.Change {
	return next(r, func(n *lock.Record) {
		*n = lock.Record{
			Key: r.Key, State: lock.StateTombstone, Mark: lock.MarkOperator, Reason: lock.ReasonOperator,
			Attempt: r.Attempt, Version: n.Version, Retain: retain, Deliveries: r.Deliveries,
		}
	})
}

// takeover begins the attempt after r's.
func takeover(r lock.Record) lock.Change {
	c := next(r, func(n *lock.Record) {
		n.State, n.Reason = lock.StateRunning, ""
		n.Attempt++
		n.Token = lock.NewToken()
		n.Lease, n.RunsUntil, n.Retain = lease, lease+appLimit, 0
		n.Deliveries++
	})
	c.Seen = true
	return c
}

// alias returns the change that makes text another key of the event.
func alias(text, event string) lock.Change {
	return lock.Change{
		Seen: true,
		Next: lock.Record{
			Key: key(text), Text: text, Role: lock.RoleAlias, Names: key(event).Digest,
			Version: lock.NewVersion(), Retain: retain, Deliveries: 1,
		},
	}
}
