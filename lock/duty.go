package lock

import (
	"context"
	"fmt"
	"time"
)

// DutyScope is the scope of duties. No route may have it.
const DutyScope = "oncegate:duty"

// A duty is a piece of background work that one replica does at a time: it is
// claimed and leased as an event is, and taken over when its holder is not heard
// of. It ends in released, never in unknown: all such work may be done twice.
// It belongs to one goroutine.
type duty struct {
	store Store
	lease time.Duration
	rec   Record // as it stood last
	token Token
}

func newDuty(store Store, namespace, name string, lease time.Duration) *duty {
	return &duty{
		store: store, lease: lease, token: NewToken(),
		rec: Record{Key: KeyOf(namespace, DutyScope, name), Text: name, Role: RoleDuty},
	}
}

// claim takes the duty on, or keeps it, and reports whether it is this
// replica's for a lease from the call on.
func (d *duty) claim(ctx context.Context) (bool, error) {
	if d.rec.Token != d.token || d.rec.State != StateRunning {
		records, err := d.store.Read(ctx, []Key{d.rec.Key})
		if err != nil {
			return false, fmt.Errorf("duty %s: %w", d.rec.Text, err)
		}
		if r := &records[0]; r.State == StateRunning && r.Lease > 0 && r.Token != d.token {
			return false, nil
		}
		d.took(&records[0])
	}
	return d.write(ctx, StateRunning)
}

// give lets another replica take the duty at once.
func (d *duty) give(ctx context.Context) error {
	if d.rec.Token == (Token{}) && d.rec.Exists() { // a write was cut short, and may have been made
		records, err := d.store.Read(ctx, []Key{d.rec.Key})
		if err != nil {
			return fmt.Errorf("duty %s: %w", d.rec.Text, err)
		}
		d.took(&records[0])
	}
	if d.rec.Token != d.token || d.rec.State != StateRunning {
		return nil
	}
	_, err := d.write(ctx, StateReleased)
	return err
}

// write makes the duty this replica's, or gives it back, on the version known.
func (d *duty) write(ctx context.Context, s State) (bool, error) {
	next := d.rec
	next.Version, next.Token, next.State, next.Reason = NewVersion(), d.token, s, ReasonDuty
	next.Lease, next.RunsUntil, next.Retain = d.lease, 0, 0
	if s == StateReleased {
		next.Lease, next.Retain = 0, 24*time.Hour
	}
	if d.rec.Token != d.token {
		next.Attempt++
	}
	change := Change{Expect: d.rec.Version, Next: next}
	results, err := d.store.Apply(ctx, []Change{change})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		d.rec.Token = Token{} // read again
		return false, fmt.Errorf("duty %s: %w", d.rec.Text, err)
	}
	d.took(&results[0].Standing)
	return results[0].Applied(change), nil
}

// took takes over what stands, which may be nothing.
func (d *duty) took(r *Record) {
	if r.Exists() {
		d.rec = *r
		return
	}
	d.rec = Record{Key: d.rec.Key, Text: d.rec.Text, Role: RoleDuty}
}
