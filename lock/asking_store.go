package lock

import (
	"context"
	"time"
)

// stillWaits looks at what the set waits for, alone: until that changes the others
// are of no interest, and they may be many and large.
func (q *asking) stillWaits(ctx context.Context, p *Policy) (bool, error) {
	c := q.awaited
	if c == nil || c.mine {
		return false, nil
	}
	before, sent := c.rec.Version, time.Now()
	records, err := q.g.read(ctx, []Key{c.item.Key})
	if err != nil {
		return false, err
	}
	c.rec, c.at, c.known = records[0], sent, true
	m, _ := c.means(p)
	return c.rec.Version == before && (m == meansWait || m == meansSettling), nil
}

// refresh reads the claims that were asked for before and may have changed. The
// first question of all is no read but a begin, so that a new event costs one
// trip; unless nothing may begin.
func (q *asking) refresh(ctx context.Context, readOnly bool) error {
	var keys []Key
	var of []*claim
	for _, c := range q.claims {
		if !c.mine && !c.known && (c.asked || readOnly) {
			keys, of = append(keys, c.item.Key), append(of, c)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	sent := time.Now()
	records, err := q.g.read(ctx, keys)
	if err != nil {
		return err
	}
	for i, c := range of {
		c.rec, c.at, c.known, c.asked = records[i], sent, true, true
	}
	return nil
}

// changes returns what is to be written for the question to go on, and of which
// claims. Nothing is begun after one that is known to be in the way: it would have
// to be given back at once.
func (q *asking) changes(ask *Ask) (batch []Change, of []*claim) {
	free := !ask.Follow && !q.closing
	for _, c := range q.claims {
		if c.mine {
			continue
		}
		var next Record
		switch m, _ := c.means(ask.Policy); {
		case m == meansLapsed:
			next = lapsed(&c.rec)
		case m == meansBegin && free:
			next = begun(&c.rec, c.item, ask, q.token(ask))
		case m == meansReplay:
			continue
		default:
			free = false
			continue
		}
		batch = append(batch, Change{Expect: c.rec.Version, Next: next, Seen: next.State == StateRunning})
		of = append(of, c)
	}
	return batch, of
}

// token returns the token of the attempt at hand, which it makes if need be.
func (q *asking) token(ask *Ask) Token {
	if q.hold == nil {
		q.hold = newAttempt(q.g, ask)
	}
	return q.hold.token
}

// write makes the changes stand, or learns what stands instead. Begins whose
// reply never came are owed an undo.
func (q *asking) write(ctx context.Context, ask *Ask, batch []Change, of []*claim) error {
	sent := time.Now()
	results, err := q.g.apply(ctx, batch)
	if err != nil {
		var undos []*debt
		for i := range batch {
			of[i].known = false
			if batch[i].Next.State == StateRunning {
				undos = append(undos, undoOf(&batch[i], ask.Policy))
			}
		}
		q.g.owed.add(undos...)
		return err
	}
	for i, r := range results {
		c := of[i]
		c.rec, c.at, c.known, c.asked = r.Standing, sent, true, true
		if !r.Applied(batch[i]) {
			continue
		}
		switch c.rec.State {
		case StateRunning:
			c.mine = true
			q.hold.own(c, sent)
		case StateUnknown:
			q.g.observe(Event{Kind: EventLapsed, Scope: c.item.Key.Scope})
		}
	}
	return nil
}
