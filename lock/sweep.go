package lock

import "context"

// sweep writes unknown for the attempts whose lease is over, so that nothing
// stays running because nobody asks.
func (b *Background) sweep(ctx context.Context) error {
	f := Filter{Namespace: b.o.Namespace, State: StateRunning, LeaseOver: true}
	return b.pages(ctx, f, Cursor{}, func(records []Record) error {
		var batch []Change
		for i := range records {
			if r := &records[i]; r.Role == RoleEvent && r.State == StateRunning && r.Lease <= 0 {
				batch = append(batch, Change{Expect: r.Version, Next: lapsed(r)})
			}
		}
		if len(batch) == 0 {
			return nil
		}
		results, err := b.g.apply(ctx, batch)
		if err != nil {
			return err
		}
		swept := 0
		for i, r := range results {
			if r.Applied(batch[i]) {
				swept++
				b.g.wake(batch[i].Next.Digest)
			}
		}
		if swept > 0 {
			b.g.observe(Event{Kind: EventSwept, N: swept})
		}
		return nil
	})
}

// pages calls do with the records that match and come after the cursor, read whole, a
// trip's worth at a time.
func (b *Background) pages(ctx context.Context, f Filter, after Cursor, do func([]Record) error) error {
	const page = 64 // records are read with their requests
	for {
		listed, err := b.catalog.List(ctx, f, after, page)
		if err != nil || len(listed) == 0 {
			return err
		}
		keys := make([]Key, len(listed))
		for i := range listed {
			keys[i] = listed[i].Key
		}
		records, err := b.g.read(ctx, keys)
		if err != nil {
			return err
		}
		if err := do(records); err != nil {
			return err
		}
		if len(listed) < page {
			return nil
		}
		last := &listed[len(listed)-1]
		after = Cursor{Scope: last.Scope, Digest: last.Digest}
	}
}
