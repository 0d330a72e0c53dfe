package proxy

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
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

// An asked is a configured witness, as one route asks it: about one event.
type asked struct {
	*configured
	batches *keyextract.Rules // by which the route's batches are taken apart; nil: it has none
}

// witness returns the route's witness; nil where it has none.
func (h *Handler) witness(r *config.Route) (lock.Witness, error) {
	if r.Witness == nil {
		return nil, nil
	}
	w, err := h.configured(r)
	if err != nil {
		return nil, err
	}
	a := asked{configured: w}
	if r.Batches {
		a.batches = r.Rules
	}
	return a, nil
}

func (h *Handler) configured(r *config.Route) (*configured, error) {
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

// Ask asks about an event by its delivery as it was kept. Of a batch it sees what
// is left when all other events are cut away: they may have other effects.
func (w asked) Ask(ctx context.Context, q lock.Question) (lock.Testimony, error) {
	d, err := parseKept(q.Request)
	if err != nil {
		return lock.TestifyNothing, err
	}
	doc := keyextract.Parse(d)
	if w.batches != nil {
		if doc, err = alone(d, doc, w.batches, q.Text); err != nil {
			return lock.TestifyNothing, err
		}
	}
	answer, err := w.rules.Ask(ctx, doc)
	return testimonies[answer], err
}

var errNotInBatch = errors.New("the kept batch does not hold the event, by the key rule as it is now")

// alone returns a batch as if it held one event.
func alone(d *delivery.Delivery, doc *keyextract.Document, rules *keyextract.Rules, key string) (*keyextract.Document, error) {
	values, err := rules.Extract(doc)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(values.Keys, key) {
		return nil, errNotInBatch
	}
	body, cut, err := rules.Only(doc, []string{key})
	if err != nil || !cut {
		return doc, err
	}
	return keyextract.Parse(withBody(d, body)), nil
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
