package lock

import "context"

// An asker knows what need not be asked of witnesses in a round. It belongs to the
// goroutine of its Background.
type asker struct {
	// stopped says, by scope, which claim was asked about last when a round's time
	// was over; missing: all had been.
	stopped map[string]Cursor
	// useless holds the claims for which there is no witness (retry, hold): what it
	// says of a version comes from the configuration alone. At most MostUnfinished.
	useless map[Key]Version
}

// askWitnesses asks about unknown claims, so that nobody need wait for the next
// delivery. Those whose request was not kept wait for one all the same: what to
// ask stands in it. What there is no time for comes first in the next round.
func (b *Background) askWitnesses(ctx context.Context) error {
	k := &b.asker
	for scope, p := range b.o.Policies {
		if p.OnUnknown != WitnessUnknown {
			continue
		}
		f := Filter{Namespace: b.o.Namespace, Scope: scope, State: StateUnknown, RunsOver: true}
		err := b.pages(ctx, f, k.stopped[scope], func(records []Record) error {
			for i := range records {
				r := &records[i]
				if r.Role != RoleEvent || r.State != StateUnknown || r.Request == nil || k.useless[r.Key] == r.Version {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				k.stopped[scope] = Cursor{Scope: r.Scope, Digest: r.Digest}
				k.heard(r, b.g.testify(ctx, r, nil, p))
			}
			return nil
		})
		if err != nil {
			return err
		}
		delete(k.stopped, scope)
	}
	return nil
}

// heard takes in what was said of a claim.
func (k *asker) heard(r *Record, s said) {
	if s.testimony != TestifyRetry && s.testimony != TestifyHold {
		return
	}
	if len(k.useless) >= MostUnfinished {
		clear(k.useless)
	}
	k.useless[r.Key] = r.Version
}
