package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A step is one thing that is broken, for a while, after a quiet time.
type step struct {
	quiet time.Duration
	what  string
	gate  int // whose; -1: both
	mode  Mode
	lasts time.Duration
	by    time.Duration // the store's clock: ahead of what it was
}

func (s step) String() string {
	text := s.what
	if s.what == wireToStore || s.what == wireToApp {
		text += " " + s.mode.String()
	}
	if s.gate >= 0 {
		text += fmt.Sprintf(" (gate %d)", s.gate)
	}
	if s.by != 0 {
		text += fmt.Sprintf(" by %v", s.by.Round(ms))
	}
	return fmt.Sprintf("%s for %v", text, s.lasts.Round(ms))
}

// What may be broken.
const (
	killGate    = "a gate is killed"
	killGates   = "both gates are killed"
	pauseGate   = "a gate is paused"
	stopGate    = "a gate is stopped and started"
	killApp     = "the app is killed"
	pauseApp    = "the app is paused"
	killStore   = "the store is killed"
	pauseStore  = "the store is paused"
	lockStore   = "the store's file is locked"
	fullDisk    = "the disk is full" // the journal's, and SQLite's
	wireToStore = "the wire to the store"
	wireToApp   = "the wire to the app"
	cutStore    = "the network to the store is cut"
	muteStore   = "the network loses what the store replies"
	cutApp      = "the network to the app is cut"
	cutGate     = "a gate is cut off from store and senders"
	clockForth  = "the store's clock is put forward, and then back"
	clockBack   = "the store's clock is put back, and then forward"
	clockLeap   = "the store's clock leaps past all limits" // and stays there
	busyMachine = "the machine is too busy for the test"    // nobody's doing
)

// kinds are what may be broken in a world, as often as it is to come.
func (o Options) kinds() []string {
	kinds := []string{killGate, killGate, killGates, pauseGate, pauseGate, stopGate, killApp, pauseApp, wireToApp, wireToApp, cutApp, fullDisk}
	if o.Store.Server != nil {
		kinds = append(kinds, killStore, pauseStore, pauseStore, wireToStore, wireToStore, wireToStore,
			cutStore, cutStore, cutStore, muteStore, muteStore, cutGate)
	} else {
		kinds = append(kinds, lockStore, lockStore, killGate, fullDisk)
	}
	if o.Clocks() {
		clock := clockForth // in one world one way, so that no two of them add up
		if o.Seed/4%2 == 1 {
			clock = clockBack
		}
		kinds = slices.Concat(kinds, slices.Repeat([]string{clock}, len(kinds)/2))
	}
	return kinds
}

// troubles returns what strikes in a world, one after the other.
func (o Options) troubles(chance *rand.Rand, during time.Duration) []step {
	kinds := o.kinds()
	var all []step
	for left := during; left > 0; {
		s := step{quiet: between(chance, 100*ms, 1200*ms), what: kinds[chance.IntN(len(kinds))], gate: chance.IntN(2), lasts: between(chance, 100*ms, 1500*ms)}
		switch s.what {
		case killGates, killApp, pauseApp, killStore, pauseStore, lockStore, fullDisk, clockForth, clockBack:
			s.gate = -1
		}
		switch s.what {
		case pauseApp:
			s.lasts = between(chance, 100*ms, mostAppPause)
		case pauseGate:
			if chance.IntN(3) == 0 { // past lease and app limit
				s.lasts = lease + o.appLimit() + between(chance, 100*ms, 1000*ms)
			} else {
				s.lasts = between(chance, 300*ms, 3000*ms)
			}
		case pauseStore, lockStore, fullDisk:
			s.lasts = between(chance, 300*ms, 3500*ms)
		case wireToStore:
			s.mode = storeMode(chance)
			s.lasts = between(chance, 300*ms, 3000*ms)
			s.gate = oneOrBoth(chance, s.gate)
		case cutStore, muteStore:
			s.lasts = between(chance, 300*ms, 3500*ms)
			s.gate = oneOrBoth(chance, s.gate)
		case cutGate:
			s.lasts = between(chance, 300*ms, 3500*ms)
		case wireToApp:
			s.mode = appMode(chance)
		case cutApp:
			s.lasts = between(chance, 50*ms, mostAppCut)
		case clockForth:
			s.by = between(chance, 300*ms, mostOff)
		case clockBack:
			s.by = -between(chance, 300*ms, mostOff)
		}
		left -= s.quiet + s.lasts
		all = append(all, s)
	}
	if o.Leaps() {
		leap := step{quiet: between(chance, 100*ms, 800*ms), what: clockLeap, gate: -1, by: lease + o.appLimit() + between(chance, 0, 5*time.Second)}
		all = slices.Insert(all, chance.IntN(len(all)), leap)
	}
	return all
}

// oneOrBoth is, once in three times, both.
func oneOrBoth(chance *rand.Rand, gate int) int {
	if chance.IntN(3) == 0 {
		return -1
	}
	return gate
}

func storeMode(chance *rand.Rand) Mode {
	switch chance.IntN(6) {
	case 0:
		return Mode{Gone: true}
	case 1:
		return Mode{Dark: true}
	case 2:
		return Mode{Delay: between(chance, 10*ms, mostDelay)}
	case 3:
		return Mode{Before: 0.2}
	case 4:
		return Mode{After: 0.2}
	}
	return Mode{Before: 0.1, After: 0.2, Delay: between(chance, 0, 30*ms)}
}

// appMode is never dark: a network that keeps a request for longer than the app
// limit is beyond what anybody can bound.
func appMode(chance *rand.Rand) Mode {
	switch chance.IntN(4) {
	case 0:
		return Mode{Gone: true}
	case 1:
		return Mode{Delay: between(chance, 10*ms, mostDelay)}
	case 2:
		return Mode{Before: 0.3}
	}
	return Mode{After: 0.3}
}
