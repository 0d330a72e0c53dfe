package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

// A Decision is what an operator says about claims, each as it was shown.
type Decision struct {
	Verb   string `json:"verb"` // done, reopen, rerun, release or forget
	Who    string `json:"who"`
	Reason string `json:"reason"`
	// Now lets an event run again although the app may still be working on it.
	Now bool `json:"now,omitempty"`
	// Status and Body are what later deliveries get, for done. 0: 200.
	Status int    `json:"status,omitempty"`
	Body   []byte `json:"body,omitempty"`
	Claims []Ref  `json:"claims"`
}

// An Outcome is what came of a decision about one claim.
type Outcome struct {
	Scope  string      `json:"scope"`
	Digest lock.Digest `json:"digest"`
	Key    string      `json:"key,omitempty"`
	// State is what the claim is now, as far as known.
	State string `json:"state,omitempty"`
	// Run is how the forwarding went, for rerun.
	Run *Run `json:"run,omitempty"`
	// Code is empty where the decision stands; else stale, refused, not_found,
	// not_yet (it stands, and some process may answer as before for two seconds),
	// unavailable or failed. Error says it in words.
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// Stands reports whether the decision was written.
func (o *Outcome) Stands() bool { return o.Code == "" || o.Code == codeNotYet }

const codeNotYet = "not_yet"

// MostDecided bounds the claims of one decision.
const MostDecided = 1000

// afterwards bounds the writing of evidence when a decision stands.
const afterwards = 10 * time.Second

// Decide writes a decision, and says what came of it for each claim, in their
// order. With an error, ErrQuery, ErrNoForwarding or the store's, nothing was written.
func (d *Desk) Decide(ctx context.Context, decision Decision) ([]Outcome, error) {
	verb, err := d.check(&decision)
	if err != nil {
		return nil, err
	}
	words := make([]lock.Word, len(decision.Claims))
	for i, ref := range decision.Claims {
		words[i] = lock.Word{
			Verb: verb, Key: lock.Key{Namespace: d.Namespace, Scope: ref.Scope, Digest: ref.Digest}, Version: ref.Version,
			Who: decision.Who, Why: decision.Reason, Now: decision.Now, Retention: d.retention(ref.Scope),
		}
		if verb == lock.VerbDone {
			words[i].Answer = &lock.Answer{Status: decision.Status, Body: decision.Body}
		}
	}
	outcomes := make([]Outcome, len(words))
	if verb == lock.VerbRerun {
		for i := range words {
			outcomes[i] = d.forwardable(ctx, &words[i])
		}
	}
	var said []lock.Word
	var of []int
	for i := range words {
		if outcomes[i].Code == "" {
			said, of = append(said, words[i]), append(of, i)
		}
	}
	texts, err := d.texts(ctx, said)
	if err != nil {
		return nil, err
	}
	for i, told := range lock.Decide(ctx, d.Store, said) {
		outcomes[of[i]] = d.outcome(ctx, verb, &decision, &said[i], &told)
		if text := texts[said[i].Key]; text != "" && outcomes[of[i]].Stands() {
			if err := d.forgetGuards(context.WithoutCancel(ctx), said[i].Key, text); err != nil {
				outcomes[of[i]].Error = strings.TrimPrefix(outcomes[of[i]].Error+"; forgotten, but its guard could not be removed: "+err.Error(), "; ")
			}
		}
	}
	return outcomes, nil
}

// forwardable sees, before anything is changed, whether the kept request can be
// forwarded. Whether there is one, and all else, is for the decision to find.
func (d *Desk) forwardable(ctx context.Context, w *lock.Word) Outcome {
	o := Outcome{Scope: w.Key.Scope, Digest: w.Key.Digest}
	records, err := d.Store.Read(ctx, []lock.Key{w.Key})
	if err == nil && records[0].Request != nil {
		var request []byte
		if request, err = lock.Unseal(records[0].Request); err == nil {
			if err = d.Forwardable(w.Key, request); err != nil {
				err = fmt.Errorf("rerun: %w: %w", lock.ErrRefused, err)
			}
		}
	}
	if err != nil {
		o.Code, o.Error = codeOf(err), err.Error()
	}
	return o
}

// check completes a decision, and finds what is wrong with it.
func (d *Desk) check(decision *Decision) (lock.Verb, error) {
	verbs := []lock.Verb{lock.VerbDone, lock.VerbReopen, lock.VerbRerun, lock.VerbRelease, lock.VerbForget}
	i := slices.IndexFunc(verbs, func(v lock.Verb) bool { return v.String() == decision.Verb })
	wrong := func(what string) error { return fmt.Errorf("the decision is %w: %s", ErrQuery, what) }
	if i < 0 {
		return 0, wrong("the verb must be done, reopen, rerun, release or forget")
	}
	if decision.Status == 0 {
		decision.Status = 200
	}
	seen := map[Ref]bool{}
	for _, ref := range decision.Claims {
		ref.Version = lock.None
		if seen[ref] {
			return 0, wrong("a claim is named twice")
		}
		seen[ref] = true
	}
	switch {
	case strings.TrimSpace(decision.Who) == "" || strings.TrimSpace(decision.Reason) == "":
		return 0, wrong("say who decides, and why")
	case len(decision.Claims) == 0 || len(decision.Claims) > MostDecided:
		return 0, wrong(fmt.Sprintf("it must be about 1 to %d claims", MostDecided))
	case decision.Status < 200 || decision.Status > 299:
		return 0, wrong("the status must be between 200 and 299: done is a success")
	case verbs[i] != lock.VerbDone && (decision.Status != 200 || decision.Body != nil):
		return 0, wrong("an answer can be given with done only")
	case decision.Now && verbs[i] != lock.VerbReopen && verbs[i] != lock.VerbRerun:
		return 0, wrong("now is for reopen and rerun only")
	case verbs[i] == lock.VerbRerun && d.Rerun == nil:
		return 0, ErrNoForwarding
	}
	return verbs[i], nil
}

// retention is the scope's; of one that the configuration does not know, long
// enough for every sender.
func (d *Desk) retention(scope string) time.Duration {
	if s := d.scope(scope); s.Retention > 0 {
		return s.Retention
	}
	return 35 * 24 * time.Hour
}

// outcome says what came of one word, and does what follows where it stands.
func (d *Desk) outcome(ctx context.Context, verb lock.Verb, decision *Decision, w *lock.Word, t *lock.Told) Outcome {
	o := Outcome{Scope: w.Key.Scope, Digest: w.Key.Digest, Key: t.Record.Text}
	if t.Record.Exists() {
		o.State = t.Record.State.String()
	}
	// What is forgotten already is as it should be. But another replica may have
	// evidence of its own.
	again := verb == lock.VerbForget && t.Record.State == lock.StateTombstone && errors.Is(t.Err, lock.ErrRefused)
	if t.Err != nil && !again {
		o.Code, o.Error = codeOf(t.Err), t.Err.Error()
	}
	if !o.Stands() {
		return o
	}
	// What was decided stands, whether or not the operator still waits.
	ctx = context.WithoutCancel(ctx)
	if verb == lock.VerbRerun {
		d.rerun(ctx, t.Request, &o)
	}
	ctx, cancel := context.WithTimeout(ctx, afterwards)
	defer cancel()
	if err := d.keep(ctx, verb, decision, w.Key, &o); err != nil {
		o.Error = strings.TrimPrefix(o.Error+"; decided, but its evidence could not be written: "+err.Error(), "; ")
	}
	if d.Decided != nil {
		d.Decided(verb, *decision, o)
	}
	return o
}

// rerun forwards the kept request. Its time is the route's upstream_timeout.
func (d *Desk) rerun(ctx context.Context, request []byte, o *Outcome) {
	run, err := d.Rerun(ctx, o.Scope, request)
	if err != nil {
		o.Code, o.Error = "failed", "the claim is open, and the next delivery runs; the kept request was not forwarded: "+err.Error()
		return
	}
	o.Run = &run
}

// keep writes the decision's evidence. What is forgotten leaves no more than
// that it was.
func (d *Desk) keep(ctx context.Context, verb lock.Verb, decision *Decision, key lock.Key, o *Outcome) error {
	if d.Evidence == nil {
		return nil
	}
	text := o.Key
	if verb == lock.VerbForget {
		text = ""
		if err := d.Evidence.Forget(ctx, key); err != nil {
			return err
		}
	}
	return d.Evidence.Write(ctx, []evidence.Entry{evidence.Decided(evidence.Entry{
		Key: key, Route: key.Scope, Result: verb.String(),
		Facts: evidence.Facts{Text: text, Who: decision.Who, Why: decision.Reason, State: o.State},
	})})
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, lock.ErrNotYet):
		return codeNotYet
	case errors.Is(err, lock.ErrStale):
		return "stale"
	case errors.Is(err, lock.ErrRefused):
		return "refused"
	case errors.Is(err, lock.ErrNoClaim):
		return "not_found"
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrUnfit):
		return "unavailable"
	}
	return "failed"
}
