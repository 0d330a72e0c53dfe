package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// BackgroundOptions says what is done in the background, and for whom.
type BackgroundOptions struct {
	Namespace string
	// Lease is that of the duty. The sweep runs at least every third of it.
	// Default 30 s.
	Lease time.Duration
	// PurgeBatch is how many records one transaction removes at the most. Default
	// 500.
	PurgeBatch int
	// Policies are those of the scopes where a witness is asked; others may be
	// left out.
	Policies map[string]*Policy
	// Horizons say, by scope, for how long the sender goes on sending: a claim
	// that isn't done and had no delivery for longer is unfinished.
	Horizons map[string]time.Duration
	// FiguresEvery is how often figures are taken. Default 1 min.
	FiguresEvery time.Duration
	// Figures takes them, on the replica that has the duty; it gets nil when the
	// duty is lost, for then another has them. It must not block.
	Figures func(*Figures)
}

// Figures are how many records there are.
type Figures struct {
	// Claims that are running or unknown are as of now; of a scope that has a
	// horizon at most MostUnfinished of each state are counted, or as many as the
	// last survey found. All others are the last survey's, and missing before it.
	Claims map[ScopeState]int
	// Surveyed says that all records have been looked at, once at least. In a large
	// store that is done rarely: after twenty times as long as it took.
	Surveyed bool
	// Over is how many records were past their retention then.
	Over int
	// Unfinished claims by scope, of the scopes that have a horizon; of each
	// state at most MostUnfinished are counted. Released ones are the survey's.
	Unfinished map[string]int
	// Unknown is how long ago the claim that is unknown the longest became so,
	// by scope, of the scopes that have a horizon; at most MostUnfinished are
	// looked at.
	Unknown map[string]time.Duration
}

// MostUnfinished bounds how many claims of one scope and state are looked at.
const MostUnfinished = 10_000

// A Background is the work that nobody waits for: the sweep, which writes
// unknown for attempts that were not heard of again and asks witnesses; the
// purge of what is past retention; and the taking of figures. Each replica
// starts one, and one at a time does the work.
type Background struct {
	g       *Gate
	catalog Catalog
	o       BackgroundOptions
	duty    *duty
	life    context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup

	// What follows is touched by its goroutine alone.

	lastFigures time.Time
	hadDuty     bool
	more        bool // the last purge was not done when its time was over
	surveyor    surveyor
	asker       asker
}

// StartBackground begins the work. It tells the Gate's observer what it did and
// what failed.
func StartBackground(g *Gate, c Catalog, o BackgroundOptions) *Background {
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.PurgeBatch == 0 {
		o.PurgeBatch = 500
	}
	if o.FiguresEvery == 0 {
		o.FiguresEvery = time.Minute
	}
	if o.Figures == nil {
		o.Figures = func(*Figures) {}
	}
	b := &Background{g: g, catalog: c, o: o, duty: newDuty(g.store, o.Namespace, "background", o.Lease)}
	b.life, b.stop = context.WithCancel(context.Background())
	b.asker = asker{stopped: make(map[string]Cursor), useless: make(map[Key]Version)}
	b.surveyor = surveyor{ended: make(chan surveyed, 1), wait: o.Lease / 8}
	b.done.Go(func() { b.run(b.life) })
	return b
}

// Close ends the work, waits for what is under way, and lets another replica go
// on at once. It is called before the Gate is closed.
func (b *Background) Close() {
	b.stop()
	b.done.Wait()
}

func (b *Background) run(ctx context.Context) {
	for {
		start := time.Now()
		more := b.once(ctx)
		pause := max(scattered(b.o.Lease/3)-time.Since(start), b.o.Lease/8)
		if more {
			pause = 0
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.g.timeout)
			defer cancel()
			if err := b.duty.give(last); err != nil {
				b.failed(err)
			}
			return
		}
	}
}

// once does a round, if the duty is this replica's. It ends well before the
// duty's lease, and reports whether there is more to purge. Witnesses come last, and
// have time of their own: they may be slow, or many of them asked.
func (b *Background) once(ctx context.Context) (more bool) {
	whole, cancel := context.WithTimeout(ctx, b.o.Lease*3/4)
	defer cancel()
	ctx, end := context.WithTimeout(ctx, b.o.Lease/2)
	defer end()
	has, err := b.duty.claim(ctx)
	if err != nil && b.life.Err() == nil {
		b.failed(err)
	}
	if b.hadDuty && !has {
		b.surveyor.last = nil
		b.o.Figures(nil)
	}
	b.hadDuty = has
	if b.more = false; !has {
		return false
	}
	for _, work := range []func(context.Context) error{b.sweep, b.purge, b.figures} {
		if err := work(ctx); err != nil && b.life.Err() == nil {
			b.failed(err)
		}
	}
	if err := b.askWitnesses(whole); err != nil && whole.Err() == nil {
		b.failed(err)
	}
	return b.more
}

func (b *Background) failed(err error) { b.g.observe(Event{Kind: EventBackgroundErr, Err: err}) }

// purge removes what is past retention, and leaves half of the round for the rest of
// the work.
func (b *Background) purge(ctx context.Context) error {
	part, cancel := context.WithTimeout(ctx, b.o.Lease/4)
	defer cancel()
	err := PurgeAll(part, b.catalog, b.o.Namespace, b.o.PurgeBatch, func(n int, err error) {
		b.g.observe(Event{Kind: EventPurged, N: n, Err: err})
	})
	if b.more = part.Err() != nil; b.more {
		return ctx.Err()
	}
	return err
}

// figures takes the figures, where it is time. What is open is looked at each
// time, also where the survey of all the rest fails.
func (b *Background) figures(ctx context.Context) error {
	if time.Since(b.lastFigures) < b.o.FiguresEvery {
		return nil
	}
	unsurveyed := b.survey(ctx)
	f := b.surveyor.figures()
	for scope, horizon := range b.o.Horizons {
		for _, s := range []State{StateRunning, StateUnknown} {
			if err := b.countOpen(ctx, f, ScopeState{scope, s}, horizon); err != nil {
				return errors.Join(unsurveyed, err)
			}
		}
	}
	b.lastFigures = time.Now()
	b.o.Figures(f)
	return unsurveyed
}

// countOpen puts into f what is running or unknown in a scope.
func (b *Background) countOpen(ctx context.Context, f *Figures, at ScopeState, horizon time.Duration) error {
	found, err := b.catalog.List(ctx, Filter{Namespace: b.o.Namespace, Scope: at.Scope, State: at.State}, Cursor{}, MostUnfinished)
	if err != nil {
		return err
	}
	f.Unfinished[at.Scope] += 0
	f.Unknown[at.Scope] += 0
	for i := range found {
		if found[i].LastSeen >= horizon {
			f.Unfinished[at.Scope]++
		}
		if at.State == StateUnknown {
			f.Unknown[at.Scope] = max(f.Unknown[at.Scope], found[i].Written)
		}
	}
	switch n := len(found); {
	case n == 0:
		delete(f.Claims, at)
	case n < MostUnfinished || n > f.Claims[at]:
		f.Claims[at] = n
	}
	return nil
}
