package evidence

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// Options say what NewRecorder needs.
type Options struct {
	Namespace string
	// Store is where entries are written to. Nil: none is kept, and only what was
	// refused is sampled. The caller closes it, after the Recorder.
	Store Store
	// Retention is how long entries are kept after their last delivery.
	Retention time.Duration
	Log       *slog.Logger
}

const (
	writeEvery = time.Second
	writeTime  = 10 * time.Second
	purgeEvery = time.Minute
	// What is removed in a second is as much as is written in one.
	purgeMost  = mostWritten
	purgeBatch = 1024
	// An entry takes in what is alike for this long, and then another begins. A
	// witness that can't tell is asked again and again, for days.
	window        = time.Minute
	witnessWindow = time.Hour
	// What may be in memory, and what is written in a second.
	mostEntries = 16 << 10
	mostBytes   = 16 << 20
	mostWritten = 4096
	batch       = 256
	// What an entry takes besides its texts.
	entryBytes = 512
	// Items of one delivery that get an entry each.
	mostItems = 256
	// Entries of a minute about deliveries of which nothing shows who sent them.
	mostUnproven = 4096
)

// A group is what deliveries that share an entry have in common.
type group struct {
	kind              Kind
	scope, key, route string
	result            telemetry.Result
	status, attempt   int
	remote            netip.Addr
	duplicate, late   bool
}

// window is how long an entry of the group takes in what is alike.
func (g *group) window() time.Duration {
	if g.kind == KindWitness {
		return witnessWindow
	}
	return window
}

// A gathered is an entry in memory.
type gathered struct {
	Entry
	group group
	dirty bool // it has to be written
	held  bool // it counts against the bounds
}

// A Recorder gathers evidence and writes it behind. Its methods may be called
// concurrently.
type Recorder struct {
	o       Options
	dropped atomic.Int64
	purged  atomic.Int64 // when a purge last succeeded, in Unix nanoseconds; 0: never
	refused refused
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	groups map[group]*gathered
	dirty  []*gathered // in the order in which they became so
	// What is held.
	entries, bytes int
	closed         bool
	// How many unproven entries have begun since.
	unproven      int
	unprovenSince time.Time
}

// NewRecorder returns a Recorder that writes until it is closed.
func NewRecorder(o Options) *Recorder {
	r := &Recorder{o: o, groups: map[group]*gathered{}}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if o.Store != nil {
		r.done.Go(func() { r.run(ctx) })
	}
	return r
}

// Record takes in an outcome. It only touches memory.
func (r *Recorder) Record(o *telemetry.Outcome) {
	left := r.o.Store != nil || o.Result != telemetry.ResultObserved // a trace, in evidence or in a claim
	if o.Key == "" || !left {
		r.refused.note(o)
		return
	}
	if r.o.Store == nil {
		return
	}
	r.item(o, o.Key)
	for i, key := range o.MoreKeys {
		if i == mostItems {
			r.dropped.Add(int64(len(o.MoreKeys) - i))
			return
		}
		r.item(o, key)
	}
}

// item takes in an outcome as evidence about one event.
func (r *Recorder) item(o *telemetry.Outcome, key string) {
	g := group{
		scope: o.Scope, key: key, route: o.Route, result: o.Result, status: o.Status, attempt: o.Attempt,
		remote: o.Remote, duplicate: o.Duplicate, late: o.Duplicate && o.Age > LateAfter,
	}
	r.gather(g, o)
}

// Witnessed takes in what a witness said about an event. It only touches memory.
func (r *Recorder) Witnessed(key lock.Key, text string, said lock.Testimony, err error) {
	if r.o.Store == nil {
		return
	}
	o := telemetry.Outcome{Result: telemetry.Result(said.String()), At: time.Now()}
	if err != nil {
		o.Detail = err.Error()
	}
	r.gather(group{kind: KindWitness, scope: key.Scope, key: text, result: o.Result}, &o)
}

// gather takes in an outcome as one of a group.
func (r *Recorder) gather(g group, o *telemetry.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.groups[g]
	if e == nil || o.At.Sub(e.First) >= g.window() {
		if e = r.begin(g, o); e == nil {
			r.dropped.Add(1)
			return
		}
	}
	e.Count++
	if o.At.After(e.Last) {
		e.Last = o.At
	}
	e.Total = max(e.Total, o.Total.Microseconds())
	e.Waited = max(e.Waited, o.Waited.Microseconds())
	e.Upstream = max(e.Upstream, o.Upstream.Microseconds())
	if !e.dirty {
		e.dirty = true
		r.dirty = append(r.dirty, e)
	}
}

// begin makes an entry for a group; nil where there is no room.
func (r *Recorder) begin(g group, o *telemetry.Outcome) *gathered {
	e := &gathered{group: g, Entry: Entry{
		ID: newID(), First: o.At, Last: o.At, Kind: g.kind,
		Route: o.Route, Provider: o.Provider, Result: string(o.Result), Status: o.Status, Duplicate: o.Duplicate, Late: g.late,
		Facts: Facts{
			Text: g.key, Attempt: o.Attempt, AppStatus: o.AppStatus, Answer: answerOf(o), SecondRun: o.SecondRun, Differs: o.Differs, Stub: o.Stub,
			Retry: o.Retry, Error: string(o.Error), Detail: telemetry.Cut(o.Detail),
		},
	}}
	e.Key.Namespace, e.Key.Scope = r.o.Namespace, g.scope
	if o.Remote.IsValid() {
		e.Remote = o.Remote.String()
	}
	if o.Payload != (lock.Digest{}) {
		e.Payload = o.Payload.String()
	}
	if r.closed || r.entries >= mostEntries || r.bytes+e.size() > mostBytes || o.Unproven && !r.unprovenRoom(o.At) {
		return nil
	}
	if old := r.groups[g]; old != nil && !old.dirty {
		r.drop(old) // one that is dirty is held until it is written
	}
	r.groups[g] = e
	r.hold(e)
	return e
}

// unprovenRoom reports whether there is room in this minute for an entry about a
// delivery that could be anybody's, and takes it.
func (r *Recorder) unprovenRoom(now time.Time) bool {
	if now.Sub(r.unprovenSince) >= time.Minute {
		r.unproven, r.unprovenSince = 0, now
	}
	r.unproven++
	return r.unproven <= mostUnproven
}

func (r *Recorder) hold(e *gathered) {
	if !e.held {
		e.held = true
		r.entries++
		r.bytes += e.size()
	}
}

func (r *Recorder) drop(e *gathered) {
	if e.held {
		e.held = false
		r.entries--
		r.bytes -= e.size()
	}
}

func (e *gathered) size() int {
	return entryBytes + 2*len(e.Text) + len(e.Retry) + len(e.Detail) + e.Answer.size()
}

// Decided completes the entry of an operator's decision: made now.
func Decided(e Entry) Entry {
	e.ID, e.Kind, e.Count = newID(), KindDecision, 1
	e.First = time.Now()
	e.Last = e.First
	return e
}

func newID() (id ID) {
	rand.Read(id[:])
	return id
}

// Dropped is how many deliveries' evidence was not written, since the start.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// Purged is when what is past retention was last removed, or there was nothing to
// remove; zero: not since the start.
func (r *Recorder) Purged() time.Time {
	if at := r.purged.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Refused returns samples of the deliveries that were refused last, the newest
// first.
func (r *Recorder) Refused() []Refused { return r.refused.samples() }

// Close writes what has gathered until ctx is over. What is left then counts as
// dropped, and is logged.
func (r *Recorder) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.done.Wait()
	if r.o.Store == nil {
		return
	}
	for ctx.Err() == nil {
		if n, err := r.write(ctx); n == 0 || err != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := 0
	for _, e := range r.dirty {
		lost += e.Count
	}
	if lost > 0 {
		r.dropped.Add(int64(lost))
		r.o.Log.Warn("evidence could not be written before the end", "deliveries", lost)
	}
	r.dirty = nil
}
