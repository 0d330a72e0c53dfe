package lock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

var (
	histories = flag.Int("histories", 150, "how many random histories to run")
	firstSeed = flag.Uint64("seed", 1, "the first of their seeds")
)

// TestHistories runs many small worlds, each with some processes on one store
// that all fail at random: what the ledger of the app then says must fit what
// the senders were told. One history alone:
//
//	go test ./lock -run TestHistories -seed 17 -histories 1
func TestHistories(t *testing.T) {
	var total worldCounts
	for i := range *histories {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				w.live()
				total.add(&w.counts)
			})
		})
	}
	t.Logf("%+v", total)
	if *histories >= 1000 { // late answers are rare
		total.check(t)
	}
}

// worldCounts say whether the histories were worth running.
type worldCounts struct {
	Runs, Effects, SecondRuns, Broken, Kills, Freezes, Faults, Late, Held, Fenced, Owed, Lapsed, Replays, Swept, Asked, Moved, Leapt int
}

func (c *worldCounts) add(o *worldCounts) {
	c.Runs += o.Runs
	c.Effects += o.Effects
	c.SecondRuns += o.SecondRuns
	c.Broken += o.Broken
	c.Kills += o.Kills
	c.Freezes += o.Freezes
	c.Faults += o.Faults
	c.Late += o.Late
	c.Held += o.Held
	c.Fenced += o.Fenced
	c.Owed += o.Owed
	c.Lapsed += o.Lapsed
	c.Replays += o.Replays
	c.Swept += o.Swept
	c.Asked += o.Asked
	c.Moved += o.Moved
	c.Leapt += o.Leapt
}

func (c *worldCounts) check(t *testing.T) {
	for name, n := range map[string]int{
		"second runs": c.SecondRuns, "broken attempts": c.Broken, "kills": c.Kills, "freezes": c.Freezes, "faults": c.Faults,
		"late answers": c.Late, "held": c.Held, "fenced": c.Fenced, "owed": c.Owed, "lapsed": c.Lapsed, "replays": c.Replays, "swept": c.Swept, "asked witnesses": c.Asked,
		"wrong clocks": c.Moved, "leaps of the clock": c.Leapt,
	} {
		if n == 0 {
			t.Errorf("no history had any %s", name)
		}
	}
}

// A world is one history: a store, processes, an app with its ledger, senders,
// an operator, and what befalls them.
type world struct {
	t     *testing.T
	seed  uint64
	store *memlock.Store
	start time.Time

	policy *lock.Policy
	// off is how far the store's clock may be off. The app keeps a limit that is
	// as much shorter.
	off  time.Duration
	wait time.Duration
	// journals says that what is owed outlives a process.
	journals bool

	mu     sync.Mutex // guards what follows
	random *rand.Rand
	faulty bool // faults may still happen
	procs  []*proc
	named  int
	events map[string]*ledger
	leapt  time.Time // when the store's clock last leapt past all limits
	counts worldCounts
	all    sync.WaitGroup
	log    []string
}

// A ledger is what the app knows of one event, and what senders were told.
type ledger struct {
	held    time.Time // the last run's claim: since then, or later
	until   time.Time // the app is working on it until then
	runs    int
	effects int
	// spoken counts the effects that came before an operator last let the
	// event run again.
	spoken  int
	commits []time.Time     // when the effects can be seen
	lost    bool            // a settle was owed by a process that died and kept no journal
	answers map[string]bool // bodies of 2xx
	replay  string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, store: memlock.New(), start: time.Now(), faulty: true, events: map[string]*ledger{}}
	w.random = rand.New(rand.NewPCG(seed, 1))
	w.policy = &lock.Policy{
		Lease:         w.upTo(3*time.Second) + time.Second,
		AppLimit:      w.upTo(5*time.Second) + 500*time.Millisecond,
		Retention:     time.Hour,
		OnUnknown:     lock.OnUnknown(w.pick(3)),
		Witness:       w,
		WitnessAnswer: &lock.Answer{Status: 200, Body: []byte("witness")},
		KeepRequest:   w.chance(50),
	}
	w.wait = w.upTo(8 * time.Second)
	w.journals = w.chance(30)
	if w.chance(40) {
		w.off = w.upTo(5 * time.Second)
		w.policy.AppLimit += w.off
	}
	return w
}

func (w *world) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.random.Int64N(int64(d)))
}

func (w *world) chance(percent int) bool { return w.pick(100) < percent }

// trouble reports whether a fault of this probability happens.
func (w *world) trouble(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faulty && w.random.IntN(100) < percent
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%8.3f ", time.Since(w.start).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

// live lets the world live: senders send, things break for a while, then no
// more, and all must come to rest.
func (w *world) live() {
	for range 3 {
		w.procs = append(w.procs, w.newProc(w.t.TempDir()))
	}
	ids := 1 + w.pick(3)
	var senders, breakers sync.WaitGroup
	for i := range ids {
		id := fmt.Sprint("evt_", i)
		w.events[id] = &ledger{answers: map[string]bool{}}
		for range 1 + w.pick(3) {
			senders.Go(func() { w.sender(id) })
		}
	}
	for i := range w.procs {
		breakers.Go(func() { w.breaker(i) })
	}
	if w.off > 0 {
		breakers.Go(w.clock)
	}
	breakers.Wait()
	w.mu.Lock()
	w.faulty = false
	w.mu.Unlock()
	w.note("no more faults")
	senders.Wait()
	time.Sleep(30 * time.Second) // what is owed is paid
	w.all.Wait()
	w.judge(ids)
	for _, p := range w.procs {
		p.end()
	}
	if w.t.Failed() {
		for _, l := range w.log {
			w.t.Log(l)
		}
	}
}

func (w *world) judge(ids int) {
	for i := range ids {
		id := fmt.Sprint("evt_", i)
		l := w.events[id]
		records, err := w.store.Read(context.Background(), []lock.Key{item(id).Key})
		if err != nil {
			w.t.Fatal(err)
		}
		if r := records[0]; r.State != lock.StateDone && !l.lost {
			w.t.Errorf("%s comes to rest as %s (%s)", id, r.State, r.Reason)
		}
		if l.effects == 0 {
			w.t.Errorf("%s was acknowledged and had no effect", id)
		}
	}
	for i, p := range w.procs {
		if n := p.gate.Owed(); n != 0 {
			w.t.Errorf("process %d still owes %d writes", i, n)
		}
		if n := p.gate.InHand(); n != 0 {
			w.t.Errorf("process %d has %d attempts in hand", i, n)
		}
	}
}

// A sender sends an event until it is acknowledged.
func (w *world) sender(id string) {
	time.Sleep(w.upTo(10 * time.Second))
	for range 2000 {
		if w.deliver(id) {
			return
		}
		time.Sleep(100*time.Millisecond + w.upTo(3*time.Second))
	}
	w.t.Errorf("%s is never acknowledged", id)
}

// deliver makes one delivery to some process, and reports whether it was
// acknowledged.
func (w *world) deliver(id string) bool {
	w.mu.Lock()
	p := w.procs[w.random.IntN(len(w.procs))]
	w.mu.Unlock()
	ctx := context.Background()
	if w.trouble(10) {
		hurry, cancel := context.WithTimeout(ctx, w.upTo(2*time.Second))
		defer cancel()
		ctx = hurry
	}
	a := &lock.Ask{Items: []lock.Item{item(id)}, Policy: w.policy, Wait: w.wait, Request: func() []byte { return []byte(id) }}
	d := p.gate.Begin(ctx, a)
	switch d.Verdict {
	case lock.Run:
		return w.run(p, id, d.Attempt)
	case lock.Replay:
		if p.isDead() {
			return false
		}
		w.replayed(id, string(d.Answer.Body))
		return true
	case lock.Held:
		w.count(&w.counts.Held)
		if w.chance(30) {
			w.operator(id)
		}
	}
	return false
}

// replayed checks an answer that a duplicate got.
func (w *world) replayed(id, body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Replays++
	l := w.events[id]
	if !l.answers[body] {
		w.t.Errorf("%s: replay of %q, which the app never said", id, body)
	}
	if l.replay != "" && l.replay != body {
		w.t.Errorf("%s: done is not final: %q, then %q", id, l.replay, body)
	}
	l.replay = body
}

// run is what a proxy does with an attempt. The sender is told when it is over.
func (w *world) run(p *proc, id string, a *lock.Attempt) bool {
	if w.trouble(15) {
		time.Sleep(w.upTo(4 * time.Second)) // stopped before the first byte
	}
	if p.isDead() {
		a.Settle(lock.Ending{State: lock.StateReleased, Reason: lock.ReasonUnsent})
		return false
	}
	if err := a.Start(); err != nil || p.isDead() {
		w.note("%s start: %v", id, err)
		a.Settle(lock.Ending{State: lock.StateReleased, Reason: lock.ReasonUnsent})
		return false
	}
	body := fmt.Sprint(id, " attempt ", a.Number(), " of ", p.name)
	ending, ok := w.app(id, body, a)
	if w.trouble(20) {
		time.Sleep(w.upTo(6 * time.Second)) // stopped before the settle
	}
	got := a.Settle(ending)
	w.note("%s settled %s: %d (dead %v)", body, ending.State, got, p.isDead())
	if ok && got != lock.SettleStands && !w.journals {
		w.mu.Lock()
		w.events[id].lost = true // if the process dies too early
		w.mu.Unlock()
	}
	return ok && !p.isDead()
}

// app works on an event, and says how that looks from the other end of the
// connection. It has an effect or not, and takes its time, also when the
// connection breaks.
func (w *world) app(id, body string, a *lock.Attempt) (lock.Ending, bool) {
	takes := w.upTo(w.policy.AppLimit - w.off)
	kind := w.pick(10)
	effect := kind < 4 || w.chance(50)
	breaks := w.trouble(30)

	w.mu.Lock()
	l := w.events[id]
	now := time.Now()
	if l.until.After(now) && !w.leapt.After(l.held) {
		w.t.Errorf("%s runs twice at a time, %v too early", body, l.until.Sub(now))
	}
	l.held = now.Add(-w.policy.Lease)
	if l.effects > l.spoken {
		if !a.SecondRun() {
			w.t.Errorf("%s is a second run after an effect, and not announced", body)
		}
		if w.policy.OnUnknown != lock.RetryUnknown && effect {
			w.t.Errorf("%s: second effect under hold or witness", body)
		}
	}
	if a.SecondRun() {
		w.counts.SecondRuns++
	}
	l.until = now.Add(takes)
	l.runs++
	w.counts.Runs++
	if breaks {
		w.counts.Broken++
	}
	happens := effect && kind != 4 && kind != 5
	if happens {
		// The effect is counted from the start on: who comes later finds it.
		l.effects++
		w.counts.Effects++
		l.commits = append(l.commits, now.Add(time.Duration(w.random.Int64N(int64(takes)+1))))
	}
	if kind < 4 {
		l.answers[body] = true
	}
	w.mu.Unlock()
	w.note("%s runs for %v: kind %d, effect %v, breaks %v", body, takes, kind, happens, breaks)

	if breaks {
		time.Sleep(w.upTo(takes + 1))
		return broken, false
	}
	time.Sleep(takes)
	switch {
	case kind < 4:
		return done(body), true
	case kind < 6:
		return released, false // a 404: nothing happened
	default:
		return fiveOO, false
	}
}

// Ask is lock.Witness's: a witness that looks into the ledger, and tells what can
// be seen there by now.
func (w *world) Ask(_ context.Context, q lock.Question) (lock.Testimony, error) {
	time.Sleep(w.upTo(50 * time.Millisecond))
	if w.trouble(20) {
		return lock.TestifyYes, errCut
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Asked++
	l := w.events[string(q.Request)]
	for _, at := range l.commits {
		if !at.After(time.Now()) {
			l.answers["witness"] = true
			return lock.TestifyYes, nil
		}
	}
	return lock.TestifyNo, nil
}

// operator looks at the ledger, and decides: done, or another run.
func (w *world) operator(id string) {
	records, err := w.store.Read(context.Background(), []lock.Key{item(id).Key})
	if err != nil || records[0].State != lock.StateUnknown || records[0].RunsUntil > 0 {
		return
	}
	word := lock.Word{
		Verb: lock.VerbReopen, Key: item(id).Key, Version: records[0].Version,
		Who: "op", Why: "a look into the ledger", Retention: time.Hour,
	}
	w.mu.Lock()
	l := w.events[id]
	l.spoken = l.effects
	had := l.effects > 0
	w.mu.Unlock()
	if had && w.chance(80) {
		word.Verb, word.Answer = lock.VerbDone, &lock.Answer{Status: 200, Body: []byte("operator")}
		w.mu.Lock()
		l.answers["operator"] = true
		w.mu.Unlock()
	}
	told := lock.Decide(context.Background(), w.store.Sibling(), []lock.Word{word})[0]
	w.note("operator says %s of %s: %v", word.Verb, id, told.Err)
}

// breaker freezes and kills a process now and then.
func (w *world) breaker(i int) {
	for range 4 {
		time.Sleep(w.upTo(12 * time.Second))
		w.mu.Lock()
		p := w.procs[i]
		w.mu.Unlock()
		switch w.pick(3) {
		case 0:
			w.count(&w.counts.Freezes)
			p.freeze(w.upTo(8 * time.Second))
		case 1:
			w.count(&w.counts.Kills)
			w.note("%s is killed", p.name)
			p.kill()
			w.all.Go(p.end)
			next := w.newProc(p.dir)
			w.mu.Lock()
			w.procs[i] = next
			w.mu.Unlock()
		default:
			p.outage(w.upTo(8 * time.Second))
		}
	}
}

// clock puts the store's clock forward and back, within what the app limit has to
// spare; under retry it also leaps, once, past all limits, and stays there.
func (w *world) clock() {
	ahead := time.Duration(0)
	for range 6 {
		time.Sleep(w.upTo(6 * time.Second))
		next := w.upTo(w.off)
		w.store.Advance(next - ahead)
		ahead = next
		w.count(&w.counts.Moved)
		w.note("the store's clock is %v ahead", ahead)
		if w.policy.OnUnknown == lock.RetryUnknown && w.chance(8) {
			w.mu.Lock()
			w.leapt = time.Now()
			w.counts.Leapt++
			w.mu.Unlock()
			w.store.Advance(w.policy.Lease + w.policy.AppLimit + w.upTo(time.Minute))
			w.note("the store's clock leaps")
			return
		}
	}
}

// A proc is one process, and the store as that process sees it.
type proc struct {
	w     *world
	name  string
	dir   string
	gate  *lock.Gate
	store *memlock.Store

	journal    *lock.Journal
	background *lock.Background

	mu   sync.Mutex // guards what follows
	dead bool
	out  time.Time     // the store is out of reach until then
	ice  chan struct{} // closed when it thaws
}

func (w *world) newProc(dir string) *proc {
	p := &proc{w: w, dir: dir, store: w.store.Sibling()}
	w.mu.Lock()
	p.name = fmt.Sprint("p", w.named)
	w.named++
	w.mu.Unlock()
	if w.journals {
		journal, err := lock.OpenJournal(dir, 0)
		if err != nil {
			w.t.Error(err)
		}
		p.journal = journal
	}
	p.gate = lock.NewGate(p, lock.Options{
		StoreTimeout: 500 * time.Millisecond, Memory: 1 << 20, Journal: p.journal,
		Observe: func(e lock.Event) {
			switch e.Kind {
			case lock.EventFenced:
				w.count(&w.counts.Fenced)
			case lock.EventLate:
				w.count(&w.counts.Late)
			case lock.EventOwed:
				w.count(&w.counts.Owed)
			case lock.EventLapsed:
				w.count(&w.counts.Lapsed)
			case lock.EventSwept:
				w.count(&w.counts.Swept)
			}
		},
	})
	p.background = lock.StartBackground(p.gate, p.store, lock.BackgroundOptions{
		Namespace: "shop", Lease: 4 * time.Second, Policies: map[string]*lock.Policy{"stripe": w.policy},
	})
	return p
}

func (p *proc) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *proc) freeze(d time.Duration) {
	ice := make(chan struct{})
	p.mu.Lock()
	p.ice = ice
	p.mu.Unlock()
	p.w.note("%s is frozen for %v", p.name, d)
	time.Sleep(d)
	close(ice)
	p.mu.Lock()
	p.ice = nil
	p.mu.Unlock()
}

func (p *proc) outage(d time.Duration) {
	p.mu.Lock()
	p.out = time.Now().Add(d)
	p.mu.Unlock()
	p.w.note("%s has no store for %v", p.name, d)
}

func (p *proc) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	if p.journal != nil {
		_ = p.journal.Close() // and nothing gets into it any more
	}
}

// end lets the goroutines of a process come home. What a dead one still does
// gets nowhere.
func (p *proc) end() {
	p.background.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := p.gate.Close(ctx)
	if p.isDead() {
		return
	}
	if p.journal != nil {
		err = errors.Join(err, p.journal.Close())
	}
	if err != nil {
		p.w.t.Errorf("%s: %v", p.name, err)
	}
}

// pass lets a call through when the process runs, and says whether it may take
// effect and whether its reply comes.
func (p *proc) pass(ctx context.Context) (applied, replied bool) {
	p.mu.Lock()
	ice, out, dead := p.ice, p.out, p.dead
	p.mu.Unlock()
	if ice != nil {
		<-ice
	}
	if dead {
		return false, false
	}
	if time.Until(out) > 0 {
		select {
		case <-time.After(time.Until(out)):
		case <-ctx.Done():
			return false, false
		}
	}
	time.Sleep(p.w.upTo(5 * time.Millisecond))
	if ctx.Err() != nil || p.isDead() {
		return false, false
	}
	if p.w.trouble(12) {
		p.w.count(&p.w.counts.Faults)
		return p.w.chance(50), false
	}
	return true, true
}

// Apply is lock.Store's, by a bad network: a change may get lost, its reply may,
// and it may be late.
func (p *proc) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	applied, replied := p.pass(ctx)
	if !applied {
		if p.w.trouble(50) {
			late := append([]lock.Change(nil), batch...)
			p.w.all.Go(func() {
				time.Sleep(p.w.upTo(10 * time.Second))
				_, _ = p.store.Apply(context.Background(), late)
			})
		}
		return nil, errCut
	}
	results, err := p.store.Apply(ctx, batch)
	if !replied {
		return nil, errCut
	}
	if p.w.trouble(5) {
		for i := 0; i < len(results); i += 2 {
			results[i] = lock.Result{Err: errCut}
		}
	}
	return results, err
}

// Read is lock.Store's.
func (p *proc) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	if _, replied := p.pass(ctx); !replied {
		return nil, errCut
	}
	return p.store.Read(ctx, keys)
}

// Close is lock.Store's.
func (p *proc) Close() error { return nil }
