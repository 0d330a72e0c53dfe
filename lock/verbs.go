package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Verb is what an operator can decide about a claim.
type Verb uint8

const (
	// VerbDone says that the event has had its effect: unknown, released → done.
	VerbDone Verb = iota
	// VerbReopen lets the next delivery run: unknown, released, done → released.
	VerbReopen
	// VerbRerun is VerbReopen for a claim whose request was kept, which the
	// caller then forwards.
	VerbRerun
	// VerbRelease cuts a hung attempt: running → unknown, under a new token, so
	// that its holder is fenced. The app is given its time all the same. It says
	// nothing of the effect: a 2xx that the attempt gets after all is proof, as
	// that of any fenced attempt, until an operator says more.
	VerbRelease
	// VerbForget removes all but digest and attempt number: released, done →
	// tombstone.
	VerbForget
)

// String returns the verb as operators type it.
func (v Verb) String() string {
	return [...]string{"done", "reopen", "rerun", "release", "forget"}[v]
}

// A Word is what an operator says about one claim: a change on the version that
// the operator was shown.
type Word struct {
	Verb    Verb
	Key     Key
	Version Version
	// Who decided, and why. Both are required; the record's reason has room for
	// maxReason bytes of them together.
	Who, Why string
	// Answer is what later deliveries get, for VerbDone. Nil: 200 and no body.
	Answer *Answer
	// Now lets the event run again although the app may still be working on it.
	Now bool
	// Retention is how long the record is kept where it can expire.
	Retention time.Duration
}

// A Told is what came of a Word.
type Told struct {
	// Record is what stands; zero where that is not known.
	Record Record
	// Request is the kept request, for VerbRerun.
	Request []byte
	// Err is nil where the decision stands and no process answers by its memory
	// of what stood before; else one of the errors below, or the store's.
	Err error
}

var (
	// ErrStale says that the claim has changed since it was shown; nothing was
	// changed.
	ErrStale = errors.New("the claim has changed since it was shown")
	// ErrNoClaim says that there is no such claim.
	ErrNoClaim = errors.New("no such claim")
	// ErrRefused says that the verb does not fit the claim's state.
	ErrRefused = errors.New("refused")
	// ErrNotYet says that the decision stands, but that some process may answer
	// as before for two seconds.
	ErrNotYet = errors.New("decided, but not yet known everywhere")
)

// maxReason bounds a record's reason, in bytes.
const maxReason = 250

// Decide writes what an operator has decided, and returns what came of each
// word, in their order; of two about one claim the second is stale. Each word is
// one change; there is no transaction. Decide returns when no process remembers
// a claim as done that the operator has opened: two seconds after the last
// write.
func Decide(ctx context.Context, store Store, words []Word) []Told {
	told := make([]Told, len(words))
	for i := 0; i < len(words); i += maxTripItems {
		end := min(i+maxTripItems, len(words))
		decideSome(ctx, store, words[i:end], told[i:end])
	}
	changed := false
	for i := range told {
		changed = changed || told[i].Err == nil
	}
	if !changed {
		return told
	}
	timer := time.NewTimer(memoryLife)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		for i := range told {
			if told[i].Err == nil {
				told[i].Err = fmt.Errorf("%w: %w", ErrNotYet, ctx.Err())
			}
		}
	}
	return told
}

// decideSome writes as many words as fit one trip.
func decideSome(ctx context.Context, store Store, words []Word, told []Told) {
	keys := make([]Key, len(words))
	for i := range words {
		keys[i] = words[i].Key
	}
	var records []Record
	err := persist(ctx, func() (err error) {
		records, err = store.Read(ctx, keys)
		return err
	})
	if err != nil {
		for i := range told {
			told[i].Err = err
		}
		return
	}
	var batch []Change
	var of []int
	said := make(map[Key]bool, len(words))
	for i := range words {
		told[i].Record = records[i]
		next, err := words[i].change(&records[i])
		if err == nil && said[keys[i]] {
			err = fmt.Errorf("%s: %w", words[i].Verb, ErrStale)
		}
		if err != nil {
			told[i].Err = err
			continue
		}
		said[keys[i]] = true
		if words[i].Verb == VerbRerun {
			if told[i].Request, told[i].Err = Unseal(records[i].Request); told[i].Err != nil {
				continue
			}
		}
		batch, of = append(batch, Change{Expect: words[i].Version, Next: next}), append(of, i)
	}
	if len(batch) == 0 {
		return
	}
	var results []Result
	err = persist(ctx, func() (err error) {
		results, err = applyAll(ctx, store, batch)
		return err
	})
	for i, at := range of {
		t := &told[at]
		switch {
		case err != nil:
			*t = Told{Err: fmt.Errorf("not known whether it was written, look again: %w", err)}
		case results[i].Applied(batch[i]):
			t.Record = results[i].Standing
		default:
			*t = Told{Record: results[i].Standing, Err: ErrStale}
		}
	}
}

// applyAll makes a batch's changes, in as many trips as their kept requests take.
func applyAll(ctx context.Context, store Store, batch []Change) (results []Result, err error) {
	for len(batch) > 0 {
		n := fitting(batch, changeSize)
		some, err := store.Apply(ctx, batch[:n])
		if err != nil {
			return nil, err
		}
		for i := range some {
			if some[i].Err != nil {
				return nil, some[i].Err
			}
		}
		results, batch = append(results, some...), batch[n:]
	}
	return results, nil
}

// change returns the record that the word makes of r.
func (w *Word) change(r *Record) (next Record, err error) {
	if blank(w.Who) || blank(w.Why) {
		return next, fmt.Errorf("%s: %w: say who decides and why", w.Verb, ErrRefused)
	}
	if !r.Exists() {
		return next, fmt.Errorf("%s: %w", w.Verb, ErrNoClaim)
	}
	if r.Version != w.Version {
		return next, fmt.Errorf("%s: %w", w.Verb, ErrStale)
	}
	if err := w.fits(r); err != nil {
		return next, fmt.Errorf("%s: %w: %w", w.Verb, ErrRefused, err)
	}
	next = *r
	next.Version, next.Token = NewVersion(), NewToken()
	next.Mark = r.Mark.spoken()
	next.Reason = w.reason()
	next.Lease, next.Retain = 0, w.Retention
	switch w.Verb {
	case VerbDone:
		next.State, next.RunsUntil, next.Request = StateDone, 0, nil
		answer := w.Answer
		if answer == nil {
			answer = &Answer{Status: 200}
		}
		answer.put(&next)
	case VerbReopen, VerbRerun:
		if r.State == StateDone {
			next.Mark |= MarkDoubt // what runs now has had an effect already
		}
		next.State, next.RunsUntil = StateReleased, 0
		next.AnswerStatus, next.AnswerHeader, next.AnswerBody = 0, nil, nil
	case VerbRelease:
		next.State, next.Retain = StateUnknown, 0
		next.RunsUntil = max(r.RunsUntil, r.Lease)                      // until then its holder hears of it, if it lives
		next.Mark = next.Mark&^markWords | r.Mark&markWords | MarkDoubt // no word on the effect
		next.Unanswered++
	case VerbForget:
		next = Record{
			Key: r.Key, Role: r.Role, State: StateTombstone, Mark: next.Mark &^ MarkDoubt, Reason: next.Reason,
			Attempt: r.Attempt, Deliveries: r.Deliveries, Token: next.Token, Version: next.Version, Retain: next.Retain,
		}
	}
	return next, nil
}

// fits says why the verb can't be said of r, if it can't.
func (w *Word) fits(r *Record) error {
	if r.Role != RoleEvent {
		return errors.New("the record is no event's claim")
	}
	states := w.Verb.states()
	switch {
	case !slices.Contains(states, r.State):
		return fmt.Errorf("the claim is %s; it must be %s", r.State, orList(states))
	case w.Verb == VerbRerun && r.Request == nil:
		return errors.New("its request was not kept; reopen it, and have its sender send it again")
	case (w.Verb == VerbReopen || w.Verb == VerbRerun) && r.RunsUntil > 0 && !w.Now:
		return fmt.Errorf("the app may be working on it for another %s; wait, or insist with now", r.RunsUntil.Round(time.Second))
	}
	return nil
}

// states are those of the claims that the verb can be said of.
func (v Verb) states() []State {
	switch v {
	case VerbDone:
		return []State{StateUnknown, StateReleased}
	case VerbReopen, VerbRerun:
		return []State{StateUnknown, StateReleased, StateDone}
	case VerbRelease:
		return []State{StateRunning}
	case VerbForget:
		return []State{StateReleased, StateDone}
	}
	return nil
}

func orList(states []State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = s.String()
	}
	return strings.Join(words, " or ")
}

// reason is the record's reason for what an operator wrote.
func (w *Word) reason() string {
	return oneLine(ReasonOperator+": "+w.Verb.String()+" by "+oneLine(w.Who, 64)+": "+w.Why, maxReason)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// oneLine makes of s valid text without control characters, of at most so many
// bytes.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
