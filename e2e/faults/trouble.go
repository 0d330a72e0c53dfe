package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A step is one thing that is broken, for a while, after a quiet time.
type step struct {
	quiet time.Duration
	what  string
	gate  int // whose; -1: both
	mode  Mode
	lasts time.Duration
}

func (s step) String() string {
	text := s.what
	if s.what == wireToStore || s.what == wireToApp {
		text += " " + s.mode.String()
	}
	if s.gate >= 0 {
		text += fmt.Sprintf(" (gate %d)", s.gate)
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
)

// troubles returns what strikes in a world, one after the other.
func troubles(chance *rand.Rand, server bool, during time.Duration) []step {
	kinds := []string{killGate, killGate, killGates, pauseGate, pauseGate, stopGate, killApp, pauseApp, wireToApp, wireToApp, fullDisk}
	if server {
		kinds = append(kinds, killStore, pauseStore, pauseStore, wireToStore, wireToStore, wireToStore, wireToStore)
	} else {
		kinds = append(kinds, lockStore, lockStore, killGate, fullDisk)
	}
	var all []step
	for left := during; left > 0; {
		s := step{quiet: between(chance, 100*ms, 1200*ms), what: kinds[chance.IntN(len(kinds))], gate: chance.IntN(2), lasts: between(chance, 100*ms, 1500*ms)}
		switch s.what {
		case killGates, killApp, pauseApp, killStore, pauseStore, lockStore, fullDisk:
			s.gate = -1
		}
		switch s.what {
		case pauseApp:
			s.lasts = between(chance, 100*ms, mostAppPause)
		case pauseGate:
			if chance.IntN(3) == 0 { // past lease and app limit
				s.lasts = lease + appLimit + between(chance, 100*ms, 1000*ms)
			} else {
				s.lasts = between(chance, 300*ms, 3000*ms)
			}
		case pauseStore, lockStore, fullDisk:
			s.lasts = between(chance, 300*ms, 3500*ms)
		case wireToStore:
			s.mode = storeMode(chance)
			s.lasts = between(chance, 300*ms, 3000*ms)
			if chance.IntN(3) == 0 {
				s.gate = -1
			}
		case wireToApp:
			s.mode = appMode(chance)
		}
		left -= s.quiet + s.lasts
		all = append(all, s)
	}
	return all
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

// strike breaks things, step by step, and mends them. It runs on the test's own
// goroutine.
func (w *world) strike(t *testing.T, ctx context.Context, steps []step) {
	for _, s := range steps {
		if !rest(ctx, s.quiet) {
			return
		}
		from := time.Now()
		w.breaks(t, ctx, s)
		w.record.Troubles = append(w.record.Troubles, Trouble{What: s.String(), Gate: s.gate, From: from, To: time.Now()})
		w.struck[s.what]++
	}
}

func (w *world) breaks(t *testing.T, ctx context.Context, s step) {
	hit := w.gates
	if s.gate >= 0 {
		hit = w.gates[s.gate : s.gate+1]
	}
	switch s.what {
	case killGate, killGates:
		for _, g := range hit {
			w.count(t, g)
			g.Kill(t)
		}
		rest(ctx, s.lasts)
		for _, g := range hit {
			w.revive(t, g)
		}
	case stopGate:
		for _, g := range hit {
			w.count(t, g)
			g.Stop(t)
			rest(ctx, s.lasts/4)
			w.revive(t, g)
		}
	case pauseGate:
		for _, g := range hit {
			g.Pause(t)
		}
		rest(ctx, s.lasts)
		for _, g := range hit {
			g.Resume(t)
		}
	case killApp:
		w.app.Kill(t)
		w.record.AppDied = append(w.record.AppDied, time.Now())
		rest(ctx, s.lasts)
		w.app.Start(t)
	case pauseApp:
		w.app.Pause(t)
		rest(ctx, s.lasts)
		w.app.Resume(t)
	case killStore:
		w.store.Server.Kill(t)
		rest(ctx, s.lasts)
		w.store.Server.Start(t)
	case pauseStore:
		w.store.Server.Pause(t)
		rest(ctx, s.lasts)
		w.store.Server.Resume(t)
	case lockStore:
		letGo, err := lockFile(ctx, w.file)
		if err != nil {
			t.Logf("nobody else could lock the file: %v", err) // the gates were too busy
			return
		}
		rest(ctx, s.lasts)
		if err := letGo(); err != nil {
			t.Errorf("let go of the file: %v", err)
		}
	case fullDisk:
		if !w.ownDisk {
			return
		}
		makeRoom, err := w.disk.fill()
		if err != nil {
			t.Fatalf("fill the disk: %v", err)
		}
		rest(ctx, s.lasts)
		if err := makeRoom(); err != nil {
			t.Fatalf("make room on the disk: %v", err)
		}
	case wireToStore, wireToApp:
		for _, g := range hit {
			wire := g.toStore
			if s.what == wireToApp {
				wire = g.toApp
			}
			wire.Set(s.mode)
			defer wire.Set(Mode{})
		}
		rest(ctx, s.lasts)
	}
}
