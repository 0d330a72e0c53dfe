package operator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/operator"
	"oncegate/lock"
	"oncegate/lock/memlock"
)

// A fleeting store of evidence takes what is written while there is time.
type fleeting struct {
	evidence.Store
	entries []evidence.Entry
}

func (f *fleeting) Write(ctx context.Context, entries []evidence.Entry) error {
	f.entries = append(f.entries, entries...)
	return ctx.Err()
}

// B72 A decision is evident however long the app worked on what was run again.
func TestSlowRerun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, kept := memlock.New(), &fleeting{}
		r := lock.Record{
			Key: lock.KeyOf("shop", "stripe", "evt_1"), Text: "evt_1", State: lock.StateUnknown, Attempt: 1,
			Version: lock.NewVersion(), Token: lock.NewToken(), Request: lock.Seal([]byte("POST")),
		}
		if _, err := store.Apply(t.Context(), []lock.Change{{Next: r, Seen: true}}); err != nil {
			t.Fatal(err)
		}
		d := &operator.Desk{
			Store: store, Catalog: store, Evidence: kept, Namespace: "shop", Scopes: func() []operator.Scope { return nil },
			Forwardable: func(lock.Key, []byte) error { return nil },
			Rerun: func(ctx context.Context, _ string, _ []byte) (operator.Run, error) {
				time.Sleep(time.Minute)
				return operator.Run{Result: "fresh", Attempt: 2, Status: 200}, ctx.Err()
			},
		}
		ref := operator.Ref{Scope: "stripe", Digest: r.Digest, Version: r.Version}
		outcomes, err := d.Decide(t.Context(), operator.Decision{Verb: "rerun", Who: "alice", Reason: "looked", Claims: []operator.Ref{ref}})
		if err != nil || outcomes[0].Code != "" || outcomes[0].Error != "" || outcomes[0].Run.Result != "fresh" || len(kept.entries) != 1 {
			t.Errorf("%+v, %v; %d entries", outcomes, err, len(kept.entries))
		}
	})
}

// A stalled catalog answers nothing.
type stalled struct{ lock.Catalog }

func (stalled) List(ctx context.Context, _ lock.Filter, _ lock.Cursor, _ int) ([]lock.Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What is forgotten stands, and an operator does not wait for ever to hear it.
func TestForgetWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		r := lock.Record{
			Key: lock.KeyOf("shop", "stripe", "evt_1"), Text: "evt_1", State: lock.StateDone, Attempt: 1,
			Version: lock.NewVersion(), Token: lock.NewToken(), Retain: time.Hour,
		}
		if _, err := store.Apply(t.Context(), []lock.Change{{Next: r, Seen: true}}); err != nil {
			t.Fatal(err)
		}
		d := &operator.Desk{Store: store, Catalog: stalled{store}, Namespace: "shop", Scopes: func() []operator.Scope {
			return []operator.Scope{{Name: "stripe", Retention: time.Hour, Guarded: true}}
		}}
		ref := operator.Ref{Scope: "stripe", Digest: r.Digest, Version: r.Version}
		outcomes, err := d.Decide(t.Context(), operator.Decision{Verb: "forget", Who: "alice", Reason: "asked to", Claims: []operator.Ref{ref}})
		if err != nil || !outcomes[0].Stands() || !strings.Contains(outcomes[0].Error, "its guard could not be removed") {
			t.Errorf("%+v, %v", outcomes, err)
		}
	})
}
