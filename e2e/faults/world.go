package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// spread is the time over which a world's events come.
const spread = 6 * time.Second

// Options say what a world is like.
type Options struct {
	Binary *harness.Binary
	Store  *Store
	Policy Policy
	Seed   int64
	Events int
	// Env is added to the gates' environment.
	Env []string
	// Retries is how long senders go on when nothing is broken any more. Zero
	// means 90 s.
	Retries time.Duration
}

// Calm reports whether nothing but the app's own endings goes wrong in the world
// of a seed: one in four.
func (o Options) Calm() bool { return o.Seed%4 == 3 }

// Clocks reports whether the store's clock is set wrong now and then: in one
// world of four.
func (o Options) Clocks() bool { return o.Seed%4 == 1 }

// Leaps reports whether it also leaps past all limits, once. What holds then is
// promised for no policy but retry.
func (o Options) Leaps() bool { return o.Clocks() && o.Policy == Retry && o.Seed/8%2 == 0 }

// appLimit is what the gates are told.
func (o Options) appLimit() time.Duration {
	if o.Clocks() {
		return appLimit + mostOff
	}
	return appLimit
}

// A gate is one of a world's two.
type gate struct {
	*harness.Gate
	number         int
	toApp, toStore *Wire
	life           *Life
}

// A world is what histories run in.
type world struct {
	Options
	gates   []*gate
	app     *testenv.Process
	store   *Store
	file    string // SQLite's
	clock   Clock  // the store's
	lan     *lan   // nil: gates are in the test's own network
	disk    disk   // the gates'
	ownDisk bool
	ledger  string
	witness *teller
	decider *decider
	sender  *sender
	record  *Record
	struck  map[string]int
	stalls  []Trouble // watch's own while it runs
}

// Live makes a world, lets its histories run, and returns what is to be judged,
// and what happened, in figures.
func Live(t *testing.T, o Options) (*Record, *Figures) {
	if o.Retries == 0 {
		o.Retries = 90 * time.Second
	}
	w := newWorld(t, o)
	chance := rand.New(rand.NewPCG(uint64(o.Seed), 1))
	events := make([]harness.Event, o.Events)
	for i := range events {
		events[i] = harness.NewEvent(i)
		w.record.Events = append(w.record.Events, events[i].ID)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	operating, endOperating := context.WithCancel(ctx)
	var others, sending sync.WaitGroup
	defer others.Wait()
	defer endOperating()
	others.Go(func() { w.watch(operating) })
	if o.Policy == Hold {
		others.Go(func() {
			if err := w.decider.work(operating); err != nil {
				t.Errorf("the operator: %v", err)
			}
		})
	}
	trying, endTrying := context.WithCancel(ctx)
	defer sending.Wait()
	defer endTrying()
	for _, e := range events {
		own := rand.New(rand.NewPCG(uint64(o.Seed), chance.Uint64()))
		sending.Go(func() { w.sender.untilOK(trying, e, own) })
	}
	if !o.Calm() {
		w.strike(t, ctx, o.troubles(chance, spread+2*time.Second))
	}
	late := time.AfterFunc(o.Retries, endTrying)
	defer late.Stop()
	sending.Wait()
	after, endAfter := context.WithTimeout(ctx, o.Retries)
	defer endAfter()
	w.sender.replays(after, events)
	w.close(t)
	endOperating()
	others.Wait()
	w.record.Troubles = append(w.record.Troubles, w.stalls...)
	if n := len(w.stalls); n > 0 {
		w.struck[busyMachine] = n
	}
	return w.record, w.figures()
}

func newWorld(t *testing.T, o Options) *world {
	dir := testenv.Dir(t)
	w := &world{
		Options: o, store: o.Store, ledger: filepath.Join(dir, "ledger"),
		record: &Record{Policy: o.Policy, Seed: o.Seed}, struck: map[string]int{},
	}
	w.disk, w.ownDisk = newDisk(t)
	w.file = filepath.Join(w.disk.dir, "claims.db")
	w.clock = Clock{Store: o.Store, File: w.file}
	t.Cleanup(func() {
		if err := o.Store.setClock(0); err != nil {
			t.Errorf("the store's clock: %v", err)
		}
	})
	w.lan = newNetworks(t)
	spec := appSpec{Seed: o.Seed, Ledger: w.ledger}
	for range 2 {
		spec.Addrs = append(spec.Addrs, fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)))
	}
	w.app = startApp(t, spec)
	w.witness = newTeller(t, w.host(front, -1), w.ledger, rand.New(rand.NewPCG(uint64(o.Seed), 2)), !o.Calm())
	for i, addr := range spec.Addrs {
		w.gates = append(w.gates, w.newGate(t, i, addr))
	}
	w.sender = &sender{gates: w.gates, http: harness.NewSender()}
	t.Cleanup(w.sender.http.Close)
	w.decider = &decider{gates: w.gates, ledger: w.ledger, decided: map[string]bool{}}
	return w
}

func (w *world) newGate(t *testing.T, number int, app string) *gate {
	g := &gate{number: number, toApp: NewWire(t, w.host(toApp, -1), app, uint64(w.Seed)+uint64(number))}
	at := w.store.URL(w.file)
	if w.store.Server != nil {
		g.toStore = NewWire(t, w.host(toStore, -1), w.store.Addr, uint64(w.Seed)+2+uint64(number))
		at = w.store.url(g.toStore.Addr)
	}
	route := harness.StripeRoute + "    wait: 1s\n    on_unknown: " + string(w.Policy) + "\n"
	if w.Policy == Witness {
		route += "    witness:\n      - with: {event: {json: /id}}\n        http: " + w.witness.URL + "/effects/{event}\n"
	}
	state, err := w.disk.folder(fmt.Sprint("state", number))
	if err != nil {
		t.Fatal(err)
	}
	var through []string
	if w.lan != nil {
		through = w.lan.through(number)
	}
	g.Gate = w.Binary.Serve(t, harness.Config{
		Upstream: "http://" + g.toApp.Addr, Routes: route, Env: w.Env, StateDir: state, Host: w.host(front, number), Through: through,
		Top: fmt.Sprintf("namespace: w%d-%s\nstore: {url: %q}\nlease: %v\napp_limit: %v\nupstream_timeout: %v\nstore_timeout: 1s\ndrain_timeout: 2s\nlog_level: warn\n",
			w.Seed, w.Policy, at, lease, w.appLimit(), upstreamTimeout),
	})
	w.lives(g)
	return g
}

// host is a gate's address in one of the networks, and with -1 that of all else.
func (w *world) host(network, gate int) string {
	if w.lan == nil {
		return "127.0.0.1"
	}
	return w.lan.addr(network, gate)
}

// lives notes that the gate's process is a new one.
func (w *world) lives(g *gate) {
	g.life = &Life{Gate: g.number, From: time.Now()}
	w.record.Lives = append(w.record.Lives, g.life)
}

// revive starts a gate anew, and waits for nothing.
func (w *world) revive(t *testing.T, g *gate) {
	w.lives(g)
	g.Spawn(t)
}

// count reads the metric of possible second runs. A gate that can't be asked yet
// has counted nothing that the judge could miss.
func (w *world) count(t *testing.T, g *gate) {
	at := time.Now()
	if n, err := g.TryMetric("oncegate_possible_second_runs_total"); err == nil {
		g.life.Counted = append(g.life.Counted, Count{at, int(n)})
	} else {
		t.Logf("gate %d does not say what it counted: %v", g.number, err)
	}
}

// stall is how late the harness itself may be woken before that counts as a
// trouble: then the gates were not served by the machine either.
const stall = 250 * time.Millisecond

// watch notes when the machine was too busy.
func (w *world) watch(ctx context.Context) {
	for last := time.Now(); rest(ctx, 50*ms); last = time.Now() {
		if now := time.Now(); now.Sub(last) > stall {
			w.stalls = append(w.stalls, Trouble{What: busyMachine, Gate: -1, From: last, To: now})
		}
	}
}

// close lets the last runs end and collects what the judge is to know.
func (w *world) close(t *testing.T) {
	for _, g := range w.gates {
		w.count(t, g)
	}
	time.Sleep(runLimit) // the last run has ended then
	runs, err := readLedger(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	w.record.Runs = runs
	for _, g := range w.gates {
		w.record.Exchanges = append(w.record.Exchanges, g.toApp.Exchanges()...)
	}
	w.sender.mu.Lock()
	defer w.sender.mu.Unlock()
	w.record.Deliveries = w.sender.deliveries
	w.decider.mu.Lock()
	defer w.decider.mu.Unlock()
	w.record.Decided = w.decider.decided
}
