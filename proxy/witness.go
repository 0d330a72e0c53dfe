package proxy

import (
	"context"
	"errors"
	"reflect"

	"oncegate/internal/config"
	"oncegate/keyextract"
	"oncegate/lock"
	"oncegate/witness"
)

// configured is a route's witness, made of what the configuration says. Like
// apps, witnesses outlive the configuration that named them; one that names the
// same again gets the same.
type configured struct {
	spec  *config.RouteWitness
	db    *witness.Database // nil where no rule has SQL
	rules *witness.Rules
}

// witness returns the route's witness; nil where it has none.
func (h *Handler) witness(r *config.Route) (lock.Witness, error) {
	if r.Witness == nil {
		return nil, nil
	}
	for _, w := range h.witnesses {
		if reflect.DeepEqual(w.spec, r.Witness) {
			return w, nil
		}
	}
	w := &configured{spec: r.Witness}
	if r.Witness.DB != nil {
		db, err := witness.OpenDatabase(*r.Witness.DB)
		if err != nil {
			return nil, err
		}
		w.db = db
	}
	rules, err := witness.Compile(r.Witness.Rules, witness.Options{Database: w.db})
	if err != nil {
		if w.db != nil {
			err = errors.Join(err, w.db.Close())
		}
		return nil, err
	}
	w.rules = rules
	h.witnesses = append(h.witnesses, w)
	return w, nil
}

// Ask asks about an event by its delivery as it was kept.
func (w *configured) Ask(ctx context.Context, q lock.Question) (lock.Testimony, error) {
	d, err := parseKept(q.Request)
	if err != nil {
		return lock.TestifyNothing, err
	}
	answer, err := w.rules.Ask(ctx, keyextract.Parse(d))
	return testimonies[answer], err
}

var testimonies = map[witness.Answer]lock.Testimony{
	witness.Unknown: lock.TestifyNothing,
	witness.Yes:     lock.TestifyYes,
	witness.No:      lock.TestifyNo,
	witness.Retry:   lock.TestifyRetry,
	witness.Hold:    lock.TestifyHold,
}

func (w *configured) close() error {
	w.rules.Close()
	if w.db == nil {
		return nil
	}
	return w.db.Close()
}

// Witnessed returns the policies, by scope, under which a witness is asked.
func (h *Handler) Witnessed() map[string]*lock.Policy {
	policies := map[string]*lock.Policy{}
	for _, r := range h.table.Load().routes {
		if r.policy.Witness != nil {
			policies[r.Scope] = r.policy
		}
	}
	return policies
}
