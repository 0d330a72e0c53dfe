package faults

import (
	"context"
	"testing"
	"time"
)

// strike breaks things, step by step, and mends them. It runs on the test's own
// goroutine.
func (w *world) strike(t *testing.T, ctx context.Context, steps []step) {
	for _, s := range steps {
		if !rest(ctx, s.quiet) {
			return
		}
		from := time.Now()
		if !w.breaks(t, ctx, s) {
			continue
		}
		trouble := Trouble{What: s.String(), Gate: s.gate, From: from, To: time.Now()}
		switch s.what {
		case clockForth, clockBack, clockLeap: // for a leap see Move
			trouble.Harmless = true
		case cutStore, muteStore, cutApp, cutGate:
			trouble.To = trouble.To.Add(s.lasts) // until the kernel sends again what was lost
		}
		w.record.Troubles = append(w.record.Troubles, trouble)
		w.struck[w.label(s.what)]++
	}
}

// breaks breaks one thing, and mends it. It reports whether it could.
func (w *world) breaks(t *testing.T, ctx context.Context, s step) bool {
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
	case clockForth, clockBack, clockLeap:
		return w.setClock(t, ctx, s)
	case lockStore:
		return w.lockFile(t, ctx, s)
	case fullDisk:
		return w.fillDisk(t, ctx, s)
	case wireToStore, wireToApp:
		w.breakWires(ctx, s, hit)
	case cutStore, muteStore, cutApp, cutGate:
		w.partition(t, ctx, s, hit)
	}
	return true
}

// setClock puts the store's clock forward or back, and, but for a leap, back again.
func (w *world) setClock(t *testing.T, ctx context.Context, s step) bool {
	move := func(by time.Duration) bool {
		at := time.Now()
		if err := w.clock.Move(ctx, by); err != nil {
			t.Logf("the store's clock could not be set: %v", err) // SQLite's file was too busy
			return false
		}
		w.record.Moves = append(w.record.Moves, Move{From: at, To: time.Now(), By: by, Leap: s.what == clockLeap})
		return true
	}
	if !move(s.by) {
		return false
	}
	if s.what == clockLeap {
		return true
	}
	rest(ctx, s.lasts)
	for !move(-s.by) && rest(ctx, 100*ms) { // or the next would add up with it
	}
	return true
}

func (w *world) lockFile(t *testing.T, ctx context.Context, s step) bool {
	letGo, err := lockFile(ctx, w.file)
	if err != nil {
		t.Logf("nobody else could lock the file: %v", err) // the gates were too busy
		return false
	}
	rest(ctx, s.lasts)
	if err := letGo(); err != nil {
		t.Errorf("let go of the file: %v", err)
	}
	return true
}

func (w *world) fillDisk(t *testing.T, ctx context.Context, s step) bool {
	if !w.ownDisk {
		return false
	}
	makeRoom, err := w.disk.fill()
	if err != nil {
		t.Fatalf("fill the disk: %v", err)
	}
	rest(ctx, s.lasts)
	if err := makeRoom(); err != nil {
		t.Fatalf("make room on the disk: %v", err)
	}
	return true
}

func (w *world) breakWires(ctx context.Context, s step, hit []*gate) {
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

// partition cuts networks, or, where there are none, does with wires what is
// nearest to it.
func (w *world) partition(t *testing.T, ctx context.Context, s step, hit []*gate) {
	if w.lan == nil {
		s.mode = map[string]Mode{cutStore: {Dark: true}, muteStore: {After: 1}, cutApp: {Gone: true}, cutGate: {Dark: true}}[s.what]
		if s.what == cutApp {
			s.what = wireToApp
		}
		w.breakWires(ctx, s, hit)
		return
	}
	cut, mend := w.lan.pull, w.lan.plug
	if s.what == muteStore {
		cut, mend = w.lan.mute, w.lan.unmute
	}
	which := map[string][]int{cutStore: {toStore}, muteStore: {toStore}, cutApp: {toApp}, cutGate: {toStore, front}}[s.what]
	each := func(do func(network, gate int) error) {
		for _, g := range hit {
			for _, network := range which {
				if err := do(network, g.number); err != nil {
					t.Fatalf("%v: %v", s, err)
				}
			}
		}
	}
	each(cut)
	rest(ctx, s.lasts)
	each(mend)
}

// label is what a trouble is called in figures.
func (w *world) label(what string) string {
	switch what {
	case cutStore, muteStore, cutApp, cutGate:
		if w.lan == nil {
			return what + ", as far as wires can"
		}
	}
	return what
}
