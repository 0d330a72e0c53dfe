package lock

import (
	"context"
	"time"
)

// pay writes the debts, no two on one key. It returns those that have to wait
// for another's attempt to end, and, with the error, those not written when ctx
// was over.
func (g *Gate) pay(ctx context.Context, debts []*debt) (left []*debt, err error) {
	for len(debts) > 0 {
		if debts, left, err = g.payUndos(ctx, debts, left); err != nil {
			return append(left, debts...), err
		}
		if len(debts) == 0 {
			return left, nil
		}
		batch := make([]Change, len(debts))
		for i, d := range debts {
			batch[i] = d.due()
		}
		results, err := g.apply(ctx, batch)
		if err != nil {
			return append(left, debts...), err
		}
		var again, stuck []*debt
		for i, r := range results {
			switch d := debts[i]; d.next(&r.Standing) {
			case debtAgain:
				again = append(again, d)
			case debtWaits:
				if d.standing.Lease <= 0 {
					stuck = append(stuck, d)
				} else {
					left = append(left, d)
				}
			case debtLate:
				g.observe(Event{Kind: EventLate, Scope: d.key.Scope})
			}
		}
		if err := g.lapse(ctx, stuck); err != nil {
			return append(append(left, again...), stuck...), err
		}
		debts = append(again, stuck...)
	}
	return left, nil
}

// lapse writes unknown for the attempts that these debts wait for, whose lease
// is over: nobody else may be looking.
func (g *Gate) lapse(ctx context.Context, stuck []*debt) error {
	if len(stuck) == 0 {
		return nil
	}
	batch := make([]Change, len(stuck))
	for i, d := range stuck {
		batch[i] = Change{Expect: d.standing.Version, Next: lapsed(&d.standing)}
	}
	results, err := g.apply(ctx, batch)
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Applied(batch[i]) {
			g.observe(Event{Kind: EventLapsed, Scope: stuck[i].key.Scope})
		}
	}
	return nil
}

// payUndos turns the undos among the debts into changes, by what stands. Those
// that need none are paid; all are left where the read fails.
func (g *Gate) payUndos(ctx context.Context, debts, left []*debt) (rest, stillLeft []*debt, err error) {
	var keys []Key
	var undos []*debt
	for _, d := range debts {
		if d.undo != nil {
			keys, undos = append(keys, d.key), append(undos, d)
		} else {
			rest = append(rest, d)
		}
	}
	if len(undos) == 0 {
		return rest, left, nil
	}
	records, err := g.read(ctx, keys)
	if err != nil {
		return rest, append(left, undos...), err
	}
	for i, d := range undos {
		if c, ok := d.undoing(&records[i]); ok {
			d.change = c
			rest = append(rest, d)
		}
	}
	return rest, left, nil
}

// renewOwed renews the claims whose end the store did not take, where it is
// time, so that nobody takes over what has ended here.
func (g *Gate) renewOwed(ctx context.Context, debts []*debt) error {
	var batch []Change
	var of []*debt
	for _, d := range debts {
		if c, ok := d.renewal(); ok {
			batch, of = append(batch, c), append(of, d)
		}
	}
	if len(batch) == 0 {
		return nil
	}
	sent := time.Now()
	results, err := g.apply(ctx, batch)
	if err != nil {
		return err
	}
	for i, r := range results {
		d := of[i]
		if !r.Applied(batch[i]) && !heldBy(&r.Standing, d.token) {
			continue // the next payment finds out
		}
		d.change.Expect = r.Standing.Version
		if r.Applied(batch[i]) {
			d.renewed = sent
			g.observe(Event{Kind: EventRenewed, Scope: d.key.Scope})
		}
	}
	return nil
}
