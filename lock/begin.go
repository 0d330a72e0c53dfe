package lock

import (
	"context"
	"crypto/sha256"
	"time"
)

// Begin asks whether a delivery may go through. It returns when that is
// decided, or when the wait or ctx is over; in any case the store has been
// asked once. Where the verdict is Run, the caller owes the attempt a Settle.
func (g *Gate) Begin(ctx context.Context, ask *Ask) Decision {
	if d, ok := g.remembered(ask); ok {
		return d
	}
	if ask.Guard.Text != "" {
		through, err := g.throughGuard(ask)
		switch {
		case err == nil:
			ask = through
		case !g.knows(ask):
			return unavailable(err)
		default:
			// Begun without its guard, it could run again under another key.
			follow := *ask
			follow.Guard, follow.Follow = Item{}, true
			ask = &follow
		}
	}
	now := time.Now()
	m := &member{ask: ask, reply: make(chan Decision, 1), came: now, until: now.Add(ask.Wait)}
	f := g.join(m)
	if f == nil {
		// Nothing begins any more, but what is done, or runs, is not to run again
		// where a route would rather forward than refuse.
		return m.told(newAsking(g, ask.inOrder()).ask(ask))
	}
	wait := time.NewTimer(ask.Wait)
	defer wait.Stop()
	select {
	case d := <-m.reply:
		return d
	case <-wait.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	m.leaving = true
	f.mu.Unlock()
	f.stir()
	return <-m.reply
}

// join puts m into the flight of its events, and starts one if there is none.
// It returns nil when the Gate is closing.
func (g *Gate) join(m *member) *flight {
	items := m.ask.inOrder()
	id := setID(items)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosing() {
		return nil
	}
	f := g.flights[id]
	if f == nil {
		f = &flight{g: g, id: id, items: items, stirred: make(chan struct{}, 1), members: []*member{m}}
		f.asking = newAsking(g, items)
		g.flights[id] = f
		g.wg.Go(f.run)
		return f
	}
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	f.stir()
	return f
}

// knows reports whether this process has the ask's events in hand, or owes the
// store how that ended.
func (g *Gate) knows(ask *Ask) bool {
	g.mu.Lock()
	flying := g.flights[setID(ask.inOrder())] != nil
	g.mu.Unlock()
	return flying || g.owed.holds(ask.Items[0].Key)
}

// setID names a set of items.
func setID(items []Item) (id Digest) {
	h := sha256.New()
	for _, it := range items {
		h.Write([]byte(it.Key.Namespace + "\x00" + it.Key.Scope + "\x00"))
		h.Write(it.Key.Digest[:])
	}
	h.Sum(id[:0])
	return id
}
