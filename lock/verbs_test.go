package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"oncegate/lock"
)

// say lets an operator decide about an event as it stands.
func (r *rig) say(id string, verb lock.Verb, changes ...func(*lock.Word)) lock.Told {
	r.t.Helper()
	w := lock.Word{Verb: verb, Key: item(id).Key, Version: r.record(id).Version, Who: "alice", Why: "looked into the books", Retention: time.Hour}
	for _, change := range changes {
		change(&w)
	}
	return lock.Decide(context.Background(), r.store.Sibling(), []lock.Word{w})[0]
}

func TestVerbs(t *testing.T) {
	now := func(w *lock.Word) { w.Now = true }
	keep := func(a *lock.Ask, _ *lock.Policy) { a.Request = func() []byte { return []byte("kept") } }

	// bring takes evt_1 to a state.
	bring := map[string]func(r *rig){
		"absent":   func(*rig) {},
		"running":  func(r *rig) { r.run(r.gate(), ask("evt_1")) },
		"done":     func(r *rig) { r.run(r.gate(), ask("evt_1")).Settle(done("app")) },
		"released": func(r *rig) { r.run(r.gate(), ask("evt_1")).Settle(released) },
		"unknown":  func(r *rig) { r.run(r.gate(), with(ask("evt_1"), keep)).Settle(broken) },
		"unknown, and the app may be running": func(r *rig) {
			limited := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = time.Minute })
			r.run(r.gate(), limited).Settle(broken)
		},
		"tombstone": func(r *rig) {
			r.run(r.gate(), ask("evt_1")).Settle(released)
			r.say("evt_1", lock.VerbForget)
		},
	}
	for _, c := range []struct {
		from   string
		verb   lock.Verb
		change func(*lock.Word)
		want   lock.State // StateNone: refused
	}{
		{"running", lock.VerbDone, nil, lock.StateNone},
		{"done", lock.VerbDone, nil, lock.StateNone},
		{"released", lock.VerbDone, nil, lock.StateDone},
		{"unknown", lock.VerbDone, nil, lock.StateDone},
		{"unknown, and the app may be running", lock.VerbDone, nil, lock.StateDone},
		{"tombstone", lock.VerbDone, nil, lock.StateNone},
		{"running", lock.VerbReopen, now, lock.StateNone},
		{"done", lock.VerbReopen, nil, lock.StateReleased},
		{"released", lock.VerbReopen, nil, lock.StateReleased},
		{"unknown", lock.VerbReopen, nil, lock.StateReleased},
		{"unknown, and the app may be running", lock.VerbReopen, nil, lock.StateNone},
		{"unknown, and the app may be running", lock.VerbReopen, now, lock.StateReleased},
		{"unknown", lock.VerbRerun, nil, lock.StateReleased},
		{"released", lock.VerbRerun, nil, lock.StateNone}, // no request was kept
		{"done", lock.VerbRerun, nil, lock.StateNone},
		{"running", lock.VerbRelease, nil, lock.StateUnknown},
		{"unknown", lock.VerbRelease, nil, lock.StateNone},
		{"done", lock.VerbRelease, nil, lock.StateNone},
		{"running", lock.VerbForget, nil, lock.StateNone}, // B72
		{"unknown", lock.VerbForget, nil, lock.StateNone},
		{"done", lock.VerbForget, nil, lock.StateTombstone},
		{"released", lock.VerbForget, nil, lock.StateTombstone},
		{"absent", lock.VerbForget, nil, lock.StateNone},
	} {
		bubble(t, c.verb.String()+" on "+c.from, func(t *testing.T, r *rig) {
			bring[c.from](r)
			before := r.record("evt_1")
			change := c.change
			if change == nil {
				change = func(*lock.Word) {}
			}
			start := time.Now()
			told := r.say("evt_1", c.verb, change)
			after := r.record("evt_1")
			if c.want == lock.StateNone {
				if !errors.Is(told.Err, lock.ErrRefused) && !errors.Is(told.Err, lock.ErrNoClaim) {
					t.Errorf("told %v", told.Err)
				}
				if after.Version != before.Version {
					t.Error("the record was changed all the same")
				}
				return
			}
			if told.Err != nil || after.State != c.want || after.Version != told.Record.Version {
				t.Fatalf("%v: stands as %s", told.Err, after.State)
			}
			if time.Since(start) < 2*time.Second {
				t.Error("told before the last process has forgotten")
			}
			if after.Token == before.Token {
				t.Error("the holder would still be the holder")
			}
			if after.Mark&lock.MarkOperator == 0 || !strings.Contains(after.Reason, "alice") || !strings.Contains(after.Reason, "books") {
				t.Errorf("who and why are lost: %q", after.Reason)
			}
			if after.Attempt != before.Attempt {
				t.Error("the attempt's number is lost")
			}
			if c.verb == lock.VerbRerun && string(told.Request) != "kept" {
				t.Errorf("request %q", told.Request)
			}
			if c.verb == lock.VerbForget && (after.Text != "" || after.AnswerBody != nil || after.Tags != nil) {
				t.Error("a tombstone remembers")
			}
		})
	}

	bubble(t, "a decision on what is no longer so changes nothing", func(t *testing.T, r *rig) {
		g := r.gate()
		r.run(g, ask("evt_1")).Settle(broken)
		shown := r.record("evt_1").Version
		r.say("evt_1", lock.VerbReopen)
		stands := r.record("evt_1").Version
		told := r.say("evt_1", lock.VerbDone, func(w *lock.Word) { w.Version = shown })
		if !errors.Is(told.Err, lock.ErrStale) || told.Record.Version != stands || r.record("evt_1").Version != stands {
			t.Errorf("told %v", told.Err)
		}
	})

	bubble(t, "many at once: each its own result, one wait", func(t *testing.T, r *rig) {
		g := r.gate()
		var words []lock.Word
		for i := range 300 {
			id := fmt.Sprint("evt_", i)
			r.run(g, ask(id)).Settle(broken)
			words = append(words, lock.Word{Verb: lock.VerbDone, Key: item(id).Key, Version: r.record(id).Version, Who: "a", Why: "b", Retention: time.Hour})
		}
		words = append(words, words[0], lock.Word{Verb: lock.VerbDone, Key: item("none").Key, Who: "a", Why: "b"})
		start := time.Now()
		told := lock.Decide(context.Background(), r.store, words)
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		for i := range 300 {
			if told[i].Err != nil || told[i].Record.State != lock.StateDone {
				t.Errorf("%d: %v", i, told[i].Err)
			}
		}
		if !errors.Is(told[300].Err, lock.ErrStale) || !errors.Is(told[301].Err, lock.ErrNoClaim) {
			t.Errorf("%v, %v", told[300].Err, told[301].Err)
		}
	})

	bubble(t, "a decision whose write fails is not known, and told so", func(t *testing.T, r *rig) {
		r.run(r.gate(), ask("evt_1")).Settle(broken)
		f := &faulty{Store: r.store.Sibling()}
		f.set(out)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w := lock.Word{Verb: lock.VerbDone, Key: item("evt_1").Key, Version: r.record("evt_1").Version, Who: "a", Why: "b", Retention: time.Hour}
		if told := lock.Decide(ctx, f, []lock.Word{w})[0]; !errors.Is(told.Err, lock.ErrUnavailable) || told.Record.Exists() {
			t.Errorf("%v", told.Err)
		}
	})

	bubble(t, "who doesn't wait is told that it is not yet known everywhere", func(t *testing.T, r *rig) {
		r.run(r.gate(), ask("evt_1")).Settle(broken)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w := lock.Word{Verb: lock.VerbDone, Key: item("evt_1").Key, Version: r.record("evt_1").Version, Who: "a", Why: "b", Retention: time.Hour}
		if told := lock.Decide(ctx, r.store, []lock.Word{w})[0]; !errors.Is(told.Err, lock.ErrNotYet) || told.Record.State != lock.StateDone {
			t.Errorf("%v", told.Err)
		}
	})

	bubble(t, "a decision without a name or a reason is none", func(t *testing.T, r *rig) {
		r.run(r.gate(), ask("evt_1")).Settle(broken)
		for _, change := range []func(*lock.Word){func(w *lock.Word) { w.Who = " " }, func(w *lock.Word) { w.Why = "" }} {
			if told := r.say("evt_1", lock.VerbDone, change); !errors.Is(told.Err, lock.ErrRefused) {
				t.Errorf("told %v", told.Err)
			}
		}
	})

	bubble(t, "reasons are one line, bounded and valid", func(t *testing.T, r *rig) {
		r.run(r.gate(), ask("evt_1")).Settle(broken)
		told := r.say("evt_1", lock.VerbDone, func(w *lock.Word) {
			w.Who, w.Why = strings.Repeat("é", 100), "a\nb\xff"+strings.Repeat("ü", 4000)
		})
		if got := told.Record.Reason; len(got) > 250 || !utf8.ValidString(got) || strings.Contains(got, "\n") || !strings.Contains(got, "a b?") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})

	bubble(t, "B72 what was forgotten is fresh, in every process, when the verb returns", func(t *testing.T, r *rig) {
		a, b := r.gate(), r.gate()
		r.run(a, ask("evt_1")).Settle(done("bug"))
		r.replays(b, "evt_1", "bug")
		r.say("evt_1", lock.VerbForget)
		next := r.run(b, ask("evt_1"))
		if next.Number() != 2 || next.SecondRun() {
			t.Errorf("attempt %d, second run %v", next.Number(), next.SecondRun())
		}
		next.Settle(done("fixed"))
		time.Sleep(time.Second)
		r.replays(a, "evt_1", "fixed")
	})

	bubble(t, "B72 no process remembers longer than the verb takes, however slow its read was", func(t *testing.T, r *rig) {
		r.run(r.gate(), ask("evt_1")).Settle(done("bug"))
		slow := r.frozen()
		slow.slowReply = 1900 * time.Millisecond
		go r.say("evt_1", lock.VerbForget, func(*lock.Word) { time.Sleep(time.Millisecond) })
		r.replays(slow.gate, "evt_1", "bug")
		time.Sleep(200 * time.Millisecond) // the verb has returned
		slow.slowReply = 0
		r.run(slow.gate, ask("evt_1")).Settle(done("fixed"))
	})

	bubble(t, "what ran and is opened again is announced as a second run", func(t *testing.T, r *rig) {
		g := r.gate()
		r.run(g, ask("evt_1")).Settle(done("first"))
		r.say("evt_1", lock.VerbReopen)
		next := r.run(g, ask("evt_1"))
		if !next.SecondRun() || next.Number() != 2 {
			t.Errorf("attempt %d, second run %v", next.Number(), next.SecondRun())
		}
		next.Settle(done("second"))
	})

	bubble(t, "done as an operator says it is replayed", func(t *testing.T, r *rig) {
		g := r.gate()
		hold := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
		r.run(g, hold).Settle(broken)
		r.say("evt_1", lock.VerbDone, func(w *lock.Word) { w.Answer = &lock.Answer{Status: 204} })
		if d := r.begin(g, hold, lock.Replay); d.Answer.Status != 204 || len(d.Answer.Body) != 0 {
			t.Errorf("replay of %d %q", d.Answer.Status, d.Answer.Body)
		}
	})

	bubble(t, "a cut attempt's holder is fenced, and the app keeps its time", func(t *testing.T, r *rig) {
		g := r.gate()
		limited := func() *lock.Ask {
			return with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = time.Minute })
		}
		hung := r.run(g, limited())
		r.say("evt_1", lock.VerbRelease)
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown || rec.RunsUntil < 50*time.Second || rec.Mark&lock.MarkDoubt == 0 {
			t.Errorf("%s, runs for %v", rec.State, rec.RunsUntil)
		}
		time.Sleep(5 * time.Second)
		if got := hung.Settle(released); got != lock.SettleFenced {
			t.Errorf("settle: %d", got)
		}
		r.begin(r.gate(), limited(), lock.Settling)
	})

	for _, c := range []struct {
		name  string
		since func(r *rig, b *lock.Gate) // the cut, before the 2xx
		after func(r *rig, b *lock.Gate) // the 2xx
		want  lock.State
		body  string
	}{
		{"settles it, so that nothing runs twice", nil, nil, lock.StateDone, "late"},
		{"counts for nothing where an operator has opened it since", func(r *rig, _ *lock.Gate) {
			r.say("evt_1", lock.VerbReopen, func(w *lock.Word) { w.Now = true })
		}, nil, lock.StateReleased, ""},
		{"does not replace what an operator has called done since", func(r *rig, _ *lock.Gate) {
			r.say("evt_1", lock.VerbDone, func(w *lock.Word) { w.Answer = &lock.Answer{Status: 200, Body: []byte("operator")} })
		}, nil, lock.StateDone, "operator"},
	} {
		bubble(t, "a 2xx of an attempt that was cut "+c.name, func(t *testing.T, r *rig) {
			a, b := r.gate(), r.gate()
			limited := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = time.Minute })
			hung := r.run(a, limited)
			r.say("evt_1", lock.VerbRelease)
			if c.since != nil {
				c.since(r, b)
			}
			if got := hung.Settle(done("late")); got != lock.SettleFenced {
				t.Errorf("settle: %d", got)
			}
			time.Sleep(2 * time.Minute)
			rec := r.record("evt_1")
			if rec.State != c.want || a.Owed() != 0 {
				t.Fatalf("comes to rest as %s, %d owed", rec.State, a.Owed())
			}
			if c.want == lock.StateDone {
				if late := rec.Mark&lock.MarkLate != 0; late != (c.body == "late") {
					t.Errorf("marked late: %v", late)
				}
				r.replays(b, "evt_1", c.body)
			}
		})
	}

	bubble(t, "a 2xx of an attempt that was cut waits for the attempt begun since", func(t *testing.T, r *rig) {
		for id, ends := range map[string]struct {
			second lock.Ending
			replay string
		}{
			"evt_1": {done("second"), "second"},
			"evt_2": {released, "late"},
			"evt_3": {broken, "late"},
		} {
			a, b := r.gate(), r.gate()
			hung := r.run(a, ask(id))
			r.say(id, lock.VerbRelease)
			second := r.run(b, ask(id))
			if !second.SecondRun() {
				t.Errorf("%s: not announced", id)
			}
			hung.Settle(done("late"))
			if rec := r.record(id); rec.State != lock.StateRunning || rec.Attempt != 2 {
				t.Errorf("%s: %s under an attempt that runs", id, rec.State)
			}
			second.Settle(ends.second)
			time.Sleep(10 * time.Second)
			r.replays(r.gate(), id, ends.replay)
		}
	})

	for _, c := range []struct {
		name string
		// between is what happens between the first attempt's loss of its claim
		// and its late 2xx.
		between func(r *rig, b *lock.Gate)
		want    lock.State
	}{
		{"reopened", func(r *rig, _ *lock.Gate) { r.say("evt_1", lock.VerbReopen) }, lock.StateReleased},
		{"reopened, run again and released", func(r *rig, b *lock.Gate) {
			r.say("evt_1", lock.VerbReopen)
			r.run(b, ask("evt_1")).Settle(released)
		}, lock.StateReleased},
		{"reopened, run again and unknown", func(r *rig, b *lock.Gate) {
			r.say("evt_1", lock.VerbReopen)
			r.run(b, ask("evt_1")).Settle(broken)
		}, lock.StateUnknown},
		{"forgotten, run again and released", func(r *rig, b *lock.Gate) {
			r.say("evt_1", lock.VerbReopen)
			r.say("evt_1", lock.VerbForget)
			r.run(b, ask("evt_1")).Settle(released)
		}, lock.StateReleased},
		{"run again and released, with no word of an operator", func(r *rig, b *lock.Gate) {
			r.run(b, ask("evt_1")).Settle(released)
		}, lock.StateDone},
	} {
		bubble(t, "a late 2xx of what was "+c.name, func(t *testing.T, r *rig) {
			a, b := r.frozen(), r.gate()
			first := r.run(a.gate, ask("evt_1"))
			a.freeze()
			time.Sleep(3 * time.Second)
			hold := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
			r.begin(b, hold, lock.Held) // it lapses
			c.between(r, b)
			a.thaw()
			first.Settle(done("late"))
			time.Sleep(10 * time.Second)
			if rec := r.record("evt_1"); rec.State != c.want {
				t.Errorf("comes to rest as %s", rec.State)
			}
			if a.gate.Owed() != 0 {
				t.Error("still owed")
			}
		})
	}

	bubble(t, "an attempt that began after an operator's word is as good as any", func(t *testing.T, r *rig) {
		a, b := r.frozen(), r.gate()
		r.run(b, ask("evt_1")).Settle(broken)
		r.say("evt_1", lock.VerbReopen)
		second := r.run(a.gate, ask("evt_1"))
		a.freeze()
		time.Sleep(3 * time.Second)
		r.run(b, ask("evt_1")).Settle(broken)
		a.thaw()
		second.Settle(done("late"))
		time.Sleep(5 * time.Second)
		r.replays(b, "evt_1", "late")
	})
}
