package lock

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	firstPoll = 25 * time.Millisecond
	mostPoll  = 200 * time.Millisecond
	// So many waiters are woken at a time.
	wakeSlice = 64
)

// A flight is all that one process does at one time about one set of events. A
// thousand duplicates are its members, and one question to the store. One
// goroutine runs it and alone decides; members only join, leave and wait.
type flight struct {
	g     *Gate
	id    Digest
	items []Item // in digest order

	stirred chan struct{} // look at the members again

	mu      sync.Mutex // guards what follows, and leaving of every member
	members []*member
	woken   bool // a record may have changed: look at the claims again

	// What follows is touched by the flight's goroutine alone.

	asking *asking
	// parting is what a member is told that leaves now; nothing before the
	// store was asked.
	parting *Decision
	poll    time.Duration
}

// A member is one delivery in a flight.
type member struct {
	ask     *Ask
	reply   chan Decision // receives exactly one
	came    time.Time     // when it joined
	until   time.Time     // when its wait is over
	leaving bool
	waited  bool // it waited for another's attempt; touched by the flight alone
}

// stir makes the flight look at its members again.
func (f *flight) stir() {
	select {
	case f.stirred <- struct{}{}:
	default:
	}
}

// run decides for the members until there are none.
func (f *flight) run() {
	for {
		lead := f.lead()
		if lead == nil {
			f.giveBack()
			if f.end() {
				return
			}
			continue
		}
		d := f.asking.ask(lead.ask)
		f.parting = &d
		switch d.Verdict {
		case Run:
			f.answer(lead, d)
			f.await(d.Attempt)
		case Busy, Settling:
			if c := f.asking.doubtful(lead.ask.Policy); c != nil {
				f.testify(c, lead.ask)
			} else {
				f.sleep(d.RetryAfter)
			}
		case Mismatch:
			f.answer(lead, d)
		default:
			f.answerAll(d)
		}
		f.parting = nil
	}
}

// giveBack releases what the flight holds and nobody wants any more.
func (f *flight) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), f.g.timeout)
	defer cancel()
	f.asking.drop(ctx, 0)
}

// lead serves those who leave and returns the member whose delivery would be
// the next attempt: the first that may become one, else the first; nil if there
// is none.
func (f *flight) lead() *member {
	f.serve()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if !m.ask.Follow {
			return m
		}
	}
	if len(f.members) > 0 {
		return f.members[0]
	}
	return nil
}

// end takes the flight off the Gate's list. It reports false when somebody has
// joined in the meantime.
func (f *flight) end() bool {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.members) > 0 {
		return false
	}
	delete(f.g.flights, f.id)
	return true
}

// await serves the members until the attempt has settled.
func (f *flight) await(a *Attempt) {
	f.parting = &Decision{Verdict: Busy, Record: a.began(), RetryAfter: a.ask.Policy.Lease}
	for {
		f.serve()
		select {
		case <-a.settled:
			f.markWaited(a.ended)
			f.asking.learn(a)
			f.poll = 0
			return
		case <-f.stirred:
		}
	}
}

// testify serves the members until a witness has spoken.
func (f *flight) testify(c *claim, ask *Ask) {
	defer func() { f.markWaited(time.Now()) }()
	var request []byte
	if ask.Request != nil && c.rec.Request == nil {
		request = ask.Request()
	}
	heard := make(chan said, 1)
	rec := c.rec
	go func() { heard <- f.g.testify(f.g.life, &rec, request, ask.Policy) }()
	// What writes nothing (retry, hold) is known to this flight alone: of members
	// who can't wait at all none would ever come to hear it.
	soon := time.NewTimer(witnessSoon)
	defer soon.Stop()
	select {
	case c.heard = <-heard:
		return
	case <-soon.C:
	}
	for {
		f.serve()
		select {
		case c.heard = <-heard:
			return
		case <-f.stirred:
		}
	}
}

// sleep serves the members until the claims may have changed: within a poll,
// which grows; when `until` is over; or when the Gate hears of it.
func (f *flight) sleep(until time.Duration) {
	f.poll = min(max(f.poll*3/2, firstPoll), mostPoll)
	pause := f.poll
	if until > 0 {
		pause = min(pause, until+time.Millisecond)
	}
	f.g.rest(f)
	defer f.g.rise(f)
	defer func() { f.markWaited(time.Now()) }()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for f.serve() > 0 {
		select {
		case <-timer.C:
			return
		case <-f.g.life.Done():
			return
		case <-f.stirred:
			if f.takeWoken() {
				f.poll = 0
				return
			}
		}
	}
}

func (f *flight) takeWoken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	woken := f.woken
	f.woken = false
	return woken
}

// markWaited notes of those who came before the moment given that they waited
// for another's attempt.
func (f *flight) markWaited(before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.waited = m.waited || m.came.Before(before)
	}
}

// serve answers the members who leave, those whose payload the route refuses,
// and those whose wait ends before anything can change, by what is known now.
// It returns how many stay.
func (f *flight) serve() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parting == nil {
		return len(f.members)
	}
	stay := f.members[:0]
	for _, m := range f.members {
		switch {
		case m.ask.mismatch(&f.parting.Record):
			m.reply <- m.told(Decision{Verdict: Mismatch, Record: f.parting.Record})
		case m.leaving, m.until.Before(f.parting.notBefore):
			m.reply <- m.told(*f.parting)
		default:
			stay = append(stay, m)
		}
	}
	clear(f.members[len(stay):])
	f.members = stay
	return len(stay)
}

// answer gives one member its decision and lets it go.
func (f *flight) answer(m *member, d Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.members {
		if f.members[i] == m {
			f.members = append(f.members[:i], f.members[i+1:]...)
			break
		}
	}
	m.reply <- m.told(d)
}

// answerAll gives all members the same decision, a slice at a time.
func (f *flight) answerAll(d Decision) {
	f.mu.Lock()
	all := f.members
	f.members = nil
	f.mu.Unlock()
	for i, m := range all {
		if i%wakeSlice == wakeSlice-1 {
			runtime.Gosched()
		}
		if m.ask.mismatch(&d.Record) {
			m.reply <- m.told(Decision{Verdict: Mismatch, Record: d.Record})
			continue
		}
		if d.Verdict == Replay && len(f.items) > 1 {
			d = f.asking.replay(m.ask) // each has a first item of its own
		}
		m.reply <- m.told(d)
	}
}

// told makes of the flight's decision the member's own.
func (m *member) told(d Decision) Decision {
	d.Waited = m.waited
	d.Differs = m.ask.differs(&d.Record)
	return d
}
