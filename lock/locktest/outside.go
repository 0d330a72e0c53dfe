package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oncegate/lock"
)

// What follows serves the tests of one store that the suite can't have: of its
// server, its settings and its connections.

// Begin is the begin of an event, in a namespace that is not the suite's.
func Begin(text string) lock.Change {
	return lock.Change{Seen: true, Next: lock.Record{
		Key: lock.KeyOf("shop", "stripe", text), Text: text, State: lock.StateRunning, Attempt: 1,
		Token: lock.NewToken(), Version: lock.NewVersion(), Lease: time.Minute, RunsUntil: time.Minute,
	}}
}

// Settle is the change to done of what c began, with an answer of some hundred bytes.
func Settle(c lock.Change) lock.Change {
	c.Expect, c.Next.Version, c.Seen = c.Next.Version, lock.NewVersion(), false
	c.Next.State, c.Next.Reason = lock.StateDone, lock.ReasonAnswered
	c.Next.Lease, c.Next.RunsUntil, c.Next.Retain = 0, 0, 35*24*time.Hour
	c.Next.AnswerStatus, c.Next.AnswerHeader, c.Next.AnswerBody = 200, make([]byte, 100), make([]byte, 300)
	return c
}

// MustApply makes a batch, all of it.
func MustApply(t testing.TB, s lock.Store, batch ...lock.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	results, err := s.Apply(ctx, batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if !r.Applied(batch[i]) {
			t.Fatal("refused")
		}
	}
}

// Weaknesses returns the names of what a check finds, a ? after each that is unknown.
func Weaknesses(t testing.TB, s lock.Checker) string {
	t.Helper()
	found, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range found {
		if w.Unknown {
			w.Name += "?"
		}
		all = append(all, w.Name)
	}
	return strings.Join(all, " ")
}

// A Server goes away and comes back.
type Server interface {
	Start(t testing.TB)
	Kill(t testing.TB)
	Pause(t testing.TB)
	Resume(t testing.TB)
}

// Outage shows that a store whose server is away says so, in time, and goes on when it
// is back; and that what it was told is there then. The server is stopped at first, as
// it was when the store was opened.
func Outage(t *testing.T, s lock.Store, server Server) {
	out := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := s.Apply(ctx, []lock.Change{Begin("out")}); !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("apply: %v", err)
		}
		if _, err := s.Read(ctx, []lock.Key{{}}); !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("read: %v", err)
		}
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("two calls of 2s in all took %v", waited)
		}
	}
	out()
	server.Start(t)
	e := Begin("e")
	MustApply(t, s, e)
	server.Kill(t)
	out()
	server.Start(t)
	MustApply(t, s, Settle(e))
	server.Pause(t)
	out()
	server.Resume(t)
	MustApply(t, s, Begin("after"))
}
