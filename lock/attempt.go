package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	"oncegate/internal/bug"
)

// ErrFenced says that the attempt's claim is another's by now.
var ErrFenced = errors.New("the claim was taken over")

// An Attempt is one forwarding of claimed events to the app. It holds its
// claims by a lease that it renews itself, until it is settled. Its methods may
// be called concurrently.
type Attempt struct {
	g     *Gate
	ask   *Ask
	token Token

	settled chan struct{} // closed when Settle has done its work
	outcome SettleResult  // valid then
	ended   time.Time     // valid then: when that was

	// renewing is over when the attempt ends, so that a renewal under way
	// doesn't keep the settle from being written.
	renewing  context.Context
	endRenews context.CancelFunc

	lost context.Context // see Lost
	lose context.CancelFunc

	// turn guards what follows. It is held through a round trip, for each write
	// needs the version of the last.
	turn   turn
	claims []*claim
	// leaseFrom is when the oldest of the writes that the lease counts from was
	// sent, by the monotonic clock.
	leaseFrom time.Time
	firstByte time.Time // zero: nothing was sent
	timer     *time.Timer
	over      bool // settled or abandoned: no more renewals
	fenced    bool
}

func newAttempt(g *Gate, ask *Ask) *Attempt {
	a := &Attempt{g: g, ask: ask, token: NewToken(), settled: make(chan struct{}), turn: make(turn, 1)}
	a.renewing, a.endRenews = context.WithCancel(context.Background())
	a.lost, a.lose = context.WithCancel(context.Background())
	return a
}

// own takes a claim in, whose begin was sent at the time given.
func (a *Attempt) own(c *claim, sent time.Time) {
	a.turn.take()
	defer a.turn.pass()
	a.claims = append(a.claims, c)
	if a.leaseFrom.IsZero() || sent.Before(a.leaseFrom) {
		a.leaseFrom = sent
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(a.ask.Policy.Lease/3, a.tick)
	}
}

// begin counts the attempt as in hand, until it is settled.
func (a *Attempt) begin() {
	a.g.wg.Add(1)
	a.g.inHand.Add(1)
	if a.SecondRun() && !bug.Is(bug.Uncounted) {
		a.g.observe(Event{Kind: EventSecondRun, Scope: a.ask.Items[0].Key.Scope})
	}
}

// Context is the attempt's own: the sender's leaving does not end it, the drain
// deadline does.
func (a *Attempt) Context() context.Context { return a.g.life }

// Lost is over when the attempt was taken over, or cut by an operator, and the app
// ends with its connection (no AppLimit): who keeps that open then lets two run at
// once. Where the app goes on anyhow it never is, for a 2xx is proof, however late.
func (a *Attempt) Lost() context.Context { return a.lost }

// Number is the attempt's number: of several claims, the highest.
func (a *Attempt) Number() int {
	a.turn.take()
	defer a.turn.pass()
	n := 0
	for _, c := range a.claims {
		n = max(n, c.rec.Attempt)
	}
	return n
}

// SecondRun reports whether an earlier attempt ended unknown, so that this one
// may be a second run.
func (a *Attempt) SecondRun() bool {
	a.turn.take()
	defer a.turn.pass()
	return slices.ContainsFunc(a.claims, func(c *claim) bool { return c.rec.Mark&MarkDoubt != 0 })
}

// Claimed returns the keys of the events that the attempt is for, in the
// delivery's order: those that were done before are not among them.
func (a *Attempt) Claimed() []string {
	a.turn.take()
	defer a.turn.pass()
	held := a.held()
	texts := make([]string, 0, len(held))
	for _, it := range a.ask.Items {
		if held[it.Key] != nil {
			texts = append(texts, it.Text)
		}
	}
	return texts
}

// held returns the claims by key. It has the turn.
func (a *Attempt) held() map[Key]*claim {
	held := make(map[Key]*claim, len(a.claims))
	for _, c := range a.claims {
		held[c.item.Key] = c
	}
	return held
}

// began returns the record of the delivery's first claimed event.
func (a *Attempt) began() Record {
	a.turn.take()
	defer a.turn.pass()
	if c := a.first(); c != nil {
		return c.rec
	}
	return Record{}
}

// first returns the claim of the delivery's first claimed event. It has the turn.
func (a *Attempt) first() *claim {
	if len(a.claims) == 1 {
		return a.claims[0]
	}
	held := a.held()
	for _, it := range a.ask.Items {
		if c := held[it.Key]; c != nil {
			return c
		}
	}
	return nil
}

// Start is called right before the first byte goes to the app, and nothing may
// be sent if it fails: with ErrFenced where the claim is lost, or with the
// store's error where a lease that was over could not be renewed. From its
// return on, the attempt may have taken effect.
func (a *Attempt) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.g.timeout)
	defer cancel()
	a.turn.take()
	defer a.turn.pass()
	for !a.fenced && time.Since(a.leaseFrom) >= a.ask.Policy.Lease {
		if err := a.renew(ctx); err != nil {
			return err
		}
	}
	if a.fenced {
		return ErrFenced
	}
	a.firstByte = time.Now()
	return nil
}

// appLeft is how long the app may still be working on what was sent.
func (a *Attempt) appLeft() time.Duration {
	if a.firstByte.IsZero() {
		return 0
	}
	return max(0, a.ask.Policy.AppLimit-time.Since(a.firstByte))
}

// tick renews the lease and sees to it that it is renewed again.
func (a *Attempt) tick() {
	a.turn.take()
	defer a.turn.pass()
	if a.over || a.fenced {
		return
	}
	ctx, cancel := context.WithTimeout(a.renewing, a.g.timeout)
	defer cancel()
	next := a.ask.Policy.Lease / 3
	switch err := a.renew(ctx); {
	case errors.Is(err, ErrFenced):
		return
	case err != nil:
		next /= 3
	default:
		a.g.observe(Event{Kind: EventRenewed, Scope: a.ask.Items[0].Key.Scope})
	}
	a.timer.Reset(next)
}

// renew writes every claim as running under a fresh lease. It has the turn.
func (a *Attempt) renew(ctx context.Context) error {
	p := a.ask.Policy
	runsUntil := p.Lease + p.AppLimit
	if !a.firstByte.IsZero() {
		runsUntil = a.appLeft()
	}
	sent := time.Now()
	for todo := a.claims; len(todo) > 0; {
		batch := make([]Change, len(todo))
		for i, c := range todo {
			next := c.rec
			next.Version, next.State, next.Reason = NewVersion(), StateRunning, ""
			next.Lease, next.RunsUntil, next.Retain = p.Lease, runsUntil, 0
			batch[i] = Change{Expect: c.rec.Version, Next: next}
		}
		results, err := a.g.apply(ctx, batch)
		if err != nil {
			return err
		}
		var again []*claim
		for i, r := range results {
			c := todo[i]
			switch {
			case r.Applied(batch[i]):
				c.rec = r.Standing
			case heldBy(&r.Standing, a.token), !r.Standing.Exists():
				// Only the version, which is None where the store has forgotten the claim:
				// who found the lease over counted an ending that was none.
				c.rec.Version = r.Standing.Version
				again = append(again, c)
			default:
				a.fence()
			}
		}
		if a.fenced {
			return ErrFenced
		}
		todo = again
	}
	a.leaseFrom = sent
	return nil
}

// heldBy reports whether the holder of the token is still the holder: until
// somebody took over, also when its lease was over and somebody said so.
func heldBy(r *Record, t Token) bool {
	return r.Token == t && (r.State == StateRunning || r.State == StateUnknown)
}

// fence marks the attempt as no longer the holder. It has the turn.
func (a *Attempt) fence() {
	if !a.fenced {
		a.fenced = true
		a.g.observe(Event{Kind: EventFenced, Scope: a.ask.Items[0].Key.Scope})
		if !a.over && a.ask.Policy.AppLimit == 0 {
			a.lose()
		}
	}
}

func (a *Attempt) isFenced() bool {
	a.turn.take()
	defer a.turn.pass()
	return a.fenced
}

func (a *Attempt) empty() bool {
	a.turn.take()
	defer a.turn.pass()
	return len(a.claims) == 0
}

// stop ends the renewals. It returns with the turn.
func (a *Attempt) stop() {
	if bug.Is(bug.LateRenewal) {
		a.turn.take()
		return
	}
	a.endRenews()
	a.turn.take()
	a.over = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// abandon ends an attempt that never came in hand.
func (a *Attempt) abandon() {
	a.stop()
	a.turn.pass()
}

// yield gives the claims back as released, before the attempt came in hand.
// What can't be written before ctx is over is owed.
func (a *Attempt) yield(ctx context.Context, given []*claim) {
	if len(given) == 0 {
		return
	}
	a.turn.take()
	defer a.turn.pass()
	debts := make([]*debt, 0, len(given))
	for _, c := range given {
		next := settledRecord(&c.rec, &Ending{State: StateReleased, Reason: ReasonYielded}, a)
		debts = append(debts, &debt{key: c.item.Key, token: a.token, change: Change{Expect: c.rec.Version, Next: next}})
	}
	a.claims = slices.DeleteFunc(a.claims, func(c *claim) bool { return slices.Contains(given, c) })
	left, _ := a.g.pay(ctx, debts) // why some are left, the store's own trips have told
	a.g.owed.add(left...)
}

// A turn is a lock whose holder may be away on a round trip.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }
func (t turn) pass() { <-t }
