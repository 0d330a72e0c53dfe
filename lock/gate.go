package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options says how a Gate works.
type Options struct {
	// StoreTimeout bounds what one delivery waits for the store, and one round
	// trip. Default 2 s.
	StoreTimeout time.Duration
	// Memory bounds the memory of done claims, in bytes. Zero: none.
	Memory int64
	// Journal keeps what is owed across restarts. Whoever opened it closes it,
	// after the Gate. Nil: what is owed is kept in memory only, and lost with the
	// process; whoever starts it says so.
	Journal *Journal
	// Observe is told of what happens; it must not block. Nil: nobody is.
	Observe func(Event)
}

// A Gate lets each event through once. It is safe for concurrent use.
type Gate struct {
	store   *Grouped
	timeout time.Duration
	memory  *memory
	observe func(Event)
	owed    *owed
	inHand  atomic.Int64
	aliases singleflight.Group

	// life is over when attempts are to be cut: at the drain deadline.
	life    context.Context
	cut     context.CancelFunc
	closing chan struct{}

	closeOnce sync.Once
	wg        sync.WaitGroup // flights, attempts, the watch

	mu      sync.Mutex // guards what follows; taken before any flight.mu
	flights map[Digest]*flight
	resting map[Digest][]*flight // by each item's digest: flights that wait for a change
}

// NewGate returns a Gate on a store. The store stays the caller's to close,
// after Close has returned.
func NewGate(store Store, o Options) *Gate {
	if o.StoreTimeout == 0 {
		o.StoreTimeout = 2 * time.Second
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	g := &Gate{
		store:   Group(store, o.StoreTimeout, o.Observe),
		timeout: o.StoreTimeout,
		memory:  newMemory(o.Memory),
		observe: o.Observe,
		closing: make(chan struct{}),
		flights: make(map[Digest]*flight),
		resting: make(map[Digest][]*flight),
	}
	g.life, g.cut = context.WithCancel(context.Background())
	g.owed = newOwed(g, o.Journal)
	if o.Journal != nil {
		if found := o.Journal.take(); len(found) > 0 {
			g.owed.keep(found)
		}
	}
	if w, ok := store.(Watcher); ok {
		g.wg.Go(func() { g.watch(w) })
	}
	return g
}

// InHand returns how many attempts have begun and not settled.
func (g *Gate) InHand() int { return int(g.inHand.Load()) }

// Owed returns how many writes wait for the store.
func (g *Gate) Owed() int { return g.owed.len() }

// Close ends the Gate's life. It begins no more attempts. Attempts in hand go on
// until ctx is over, and deliveries wait for them, and for those of other
// processes, as long as they would have; then attempts are cut: their context ends,
// and who holds them settles them. What is owed then gets the store's
// timeout to be written; an error says what was not. A second call waits as the
// first does.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closeOnce.Do(func() { close(g.closing) })
	g.mu.Unlock()

	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for (g.InHand() > 0 || g.waiting()) && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	g.cut()
	g.wg.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.timeout)
	defer cancel()
	return g.owed.close(last)
}

// waiting reports whether any delivery is undecided.
func (g *Gate) waiting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.flights) > 0
}

func (g *Gate) isClosing() bool {
	select {
	case <-g.closing:
		return true
	default:
		return false
	}
}

// apply sends a batch until it is answered or ctx is over: every change is safe
// to send again, and one whose reply was lost is found applied.
func (g *Gate) apply(ctx context.Context, batch []Change) (results []Result, err error) {
	err = persist(ctx, func() error {
		if results, err = g.store.Apply(ctx, batch); err != nil {
			return err
		}
		for i := range results {
			if results[i].Err != nil {
				return results[i].Err
			}
		}
		return nil
	})
	return results, err
}

// read reads until it is answered or ctx is over.
func (g *Gate) read(ctx context.Context, keys []Key) (records []Record, err error) {
	err = persist(ctx, func() error {
		records, err = g.store.Read(ctx, keys)
		return err
	})
	return records, err
}

// persist tries until it succeeds, ctx is over, or the store says that trying
// can't help.
func persist(ctx context.Context, try func() error) error {
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		err := try()
		if err == nil || errors.Is(err, ErrUnfit) {
			return err
		}
		timer := time.NewTimer(scattered(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// scattered returns between a half and the whole of a pause, so that replicas
// that failed together do not come again together.
func scattered(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2+1)
}

// replayOf makes of a done record the decision to replay it.
func replayOf(r *Record) Decision {
	answer, err := r.StoredAnswer()
	if err != nil {
		return unavailable(err)
	}
	return Decision{Verdict: Replay, Record: *r, Answer: answer}
}

// throughGuard writes the alias that the ask's guard is, and returns the ask
// that the delivery is by it: itself, or that of the event which the guard
// already stands for.
func (g *Gate) throughGuard(ask *Ask) (*Ask, error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	item := ask.Items[0]
	alias := Record{
		Key: ask.Guard.Key, Text: item.Text, Role: RoleAlias, Names: item.Key.Digest,
		Version: NewVersion(), Retain: ask.Policy.Retention,
	}
	// Of a storm of duplicates one writes it.
	once := string(alias.Digest[:]) + alias.Scope + "\x00" + alias.Namespace + "\x00" + item.Text
	stands, err, _ := g.aliases.Do(once, func() (any, error) {
		results, err := g.apply(ctx, []Change{{Expect: None, Next: alias, Seen: true}})
		if err != nil {
			return nil, err
		}
		return &results[0].Standing, nil
	})
	if err != nil {
		return nil, err
	}
	st := stands.(*Record)
	if st.Role != RoleAlias || st.Names == item.Key.Digest {
		return ask, nil
	}
	other := *ask
	other.Guard = Item{}
	other.Items = []Item{{Key: Key{Namespace: item.Key.Namespace, Scope: item.Key.Scope, Digest: st.Names}, Text: st.Text}}
	return &other, nil
}

// rest puts a flight among those that wait for their records to change.
func (g *Gate) rest(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, it := range f.items {
		g.resting[it.Key.Digest] = append(g.resting[it.Key.Digest], f)
	}
}

// rise takes it away again.
func (g *Gate) rise(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, it := range f.items {
		d := it.Key.Digest
		others := g.resting[d][:0]
		for _, o := range g.resting[d] {
			if o != f {
				others = append(others, o)
			}
		}
		if g.resting[d] = others; len(others) == 0 {
			delete(g.resting, d)
		}
	}
}

// wake makes the flights that wait for a record look at it again.
func (g *Gate) wake(d Digest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.resting[d] {
		f.mu.Lock()
		f.woken = true
		f.mu.Unlock()
		f.stir()
	}
}

// watch wakes waiters as the store tells of records that came to rest. When
// the store stops telling it begins again, with backoff; waiters poll anyhow.
func (g *Gate) watch(w Watcher) {
	const most = 30 * time.Second
	pause := time.Second
	for g.life.Err() == nil {
		start := time.Now()
		if err := w.Watch(g.life, g.wake); err != nil && g.life.Err() == nil {
			g.observe(Event{Kind: EventStoreError})
		}
		if time.Since(start) > most {
			pause = time.Second
		}
		timer := time.NewTimer(scattered(pause))
		select {
		case <-timer.C:
		case <-g.life.Done():
			timer.Stop()
		}
		pause = min(2*pause, most)
	}
}
