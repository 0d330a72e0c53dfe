// Package operator is what operators can ask and decide, whichever way they
// come: by the command line straight on the store, or by the API of a running
// oncegate.
//
//	desk := &operator.Desk{Store: store, Catalog: store, Evidence: evidence, Namespace: "shop", Scopes: scopes}
//	page, err := desk.Find(ctx, operator.Query{Tag: "order=4471"})
//	life, err := desk.Show(ctx, page.Claims[0].Ref())
//
// Everything that goes in and out is a plain value with JSON names: the same in
// the API, with --json, and in this package. Moments are counted back by this
// host's clock from the ages that the store's clock gave.
//
// # Deciding
//
// A decision names, for each claim, the version that was shown. If the claim has
// changed since, nothing is changed, and that is told. Who decided and why is
// kept in the claim, in its evidence, and in the log.
package operator

import (
	"context"
	"errors"
	"time"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

// A Desk answers operators. Its fields do not change; its methods may be called
// concurrently.
type Desk struct {
	Store    lock.Store
	Catalog  lock.Catalog
	Evidence evidence.Store // nil: none is kept
	// Namespace is the one that all this is about.
	Namespace string
	// Scopes returns the scopes there are.
	Scopes func() []Scope
	// Rerun forwards a kept request as the scope's next attempt. Nil where nobody
	// here can; then VerbRerun is refused.
	Rerun func(ctx context.Context, scope string, request []byte) (Run, error)
	// Forwardable says why Rerun could not forward a request as the event with this
	// key, if it can't.
	Forwardable func(key lock.Key, request []byte) error
	// Decided, if not nil, is told of each decision that was written.
	Decided func(lock.Verb, Decision, Outcome)
}

// A Scope is what claims are kept under.
type Scope struct {
	Name string
	// Retention is how long a settled claim is kept, Horizon how long its sender
	// goes on sending.
	Retention, Horizon time.Duration
	// Guarded: its events may have second keys.
	Guarded bool
}

// A Run is how a rerun went.
type Run struct {
	Result  string `json:"result"`
	Attempt int    `json:"attempt"`
	Status  int    `json:"status"`
}

var (
	// ErrQuery says that a question or a decision is not well formed.
	ErrQuery = errors.New("not well formed")
	// ErrNotFound says that there is no such claim.
	ErrNotFound = errors.New("no such claim")
	// ErrNoForwarding says that only a running oncegate can forward a request.
	ErrNoForwarding = errors.New("only a running oncegate can forward a request; give --admin URL")
)

// scope returns the scope called name; a zero one where the configuration knows
// none, whose claims can still be decided on.
func (d *Desk) scope(name string) Scope {
	for _, s := range d.Scopes() {
		if s.Name == name {
			return s
		}
	}
	return Scope{Name: name}
}
