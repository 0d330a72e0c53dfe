package operator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/internal/operator"
	"oncegate/lock"
	"oncegate/lock/memlock"
)

// newDesk returns a desk on an empty store, and what puts a claim there.
func newDesk(t *testing.T) (*operator.Desk, *memlock.Store, func(scope, text string, s lock.State, more ...func(*lock.Record))) {
	t.Helper()
	store := memlock.New()
	ev, err := sqlevidence.SQLite(filepath.Join(t.TempDir(), "evidence.db"), sqlevidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ev.Close() })
	d := &operator.Desk{
		Store: store, Catalog: store, Evidence: ev, Namespace: "shop",
		Scopes: func() []operator.Scope {
			return []operator.Scope{{Name: "github", Retention: time.Hour, Horizon: time.Minute}, {Name: "stripe", Retention: time.Hour, Horizon: time.Hour}}
		},
	}
	return d, store, func(scope, text string, s lock.State, more ...func(*lock.Record)) {
		t.Helper()
		r := lock.Record{
			Key: lock.KeyOf("shop", scope, text), Text: text, State: s, Attempt: 1, Version: lock.NewVersion(), Token: lock.NewToken(),
			Retain: time.Hour, Lease: time.Minute, Deliveries: 1,
		}
		for _, change := range more {
			change(&r)
		}
		if _, err := store.Apply(t.Context(), []lock.Change{{Next: r, Seen: true}}); err != nil {
			t.Fatal(err)
		}
	}
}

func keys(page operator.Page) (keys []string) {
	for _, c := range page.Claims {
		keys = append(keys, c.Scope+":"+c.Key)
	}
	slices.Sort(keys)
	return keys
}

func TestFind(t *testing.T) {
	d, store, put := newDesk(t)
	put("stripe", "evt_old", lock.StateReleased)
	put("github", "old", lock.StateUnknown, func(r *lock.Record) { r.Retain = 0 })
	put("github", "old-done", lock.StateDone)
	store.Advance(30 * time.Minute)
	put("stripe", "evt_new", lock.StateRunning, func(r *lock.Record) { r.Retain = 0; r.Tags = []string{"order=4471"} })
	put("stripe", "evt_new2", lock.StateDone)
	put(lock.DutyScope, "background", lock.StateRunning, func(r *lock.Record) { r.Role, r.Retain = lock.RoleDuty, 0 })
	err := d.Evidence.Write(t.Context(), []evidence.Entry{
		{ID: evidence.ID{1}, Key: lock.KeyOf("shop", "stripe", "evt_old"), First: time.Now(), Last: time.Now(), Count: 3, Result: "failed"},
		{ID: evidence.ID{2}, Key: lock.KeyOf("shop", "stripe", "evt_gone"), First: time.Now(), Last: time.Now(), Count: 1, Result: "failed"},
		{ID: evidence.ID{3}, Key: lock.KeyOf("shop", "github", "seen"), First: time.Now(), Last: time.Now(), Count: 1, Result: "observed", Facts: evidence.Facts{Text: "seen"}},
		{ID: evidence.ID{4}, Key: lock.KeyOf("shop", "github", "old"), First: time.Now(), Last: time.Now(), Count: 1, Result: "observed", Facts: evidence.Facts{Text: "old"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		q    operator.Query
		want []string
	}{
		{"all, but no duties", operator.Query{}, []string{"github:old", "github:old-done", "stripe:evt_new", "stripe:evt_new2", "stripe:evt_old"}},
		{"by tag", operator.Query{Tag: "order=4471"}, []string{"stripe:evt_new"}},
		{"by a whole key", operator.Query{Key: "evt_new"}, []string{"stripe:evt_new"}},
		{"by a whole key, with its scope", operator.Query{Key: "stripe:evt_new"}, []string{"stripe:evt_new"}},
		{"by a whole key, of another scope", operator.Query{Key: "evt_new", Scope: "github"}, nil},
		{"by a whole key and what it is not", operator.Query{Key: "evt_new", State: "done"}, nil},
		{"by a whole key and a result", operator.Query{Key: "evt_old", Result: "failed"}, []string{"stripe:evt_old"}},
		{"by a key that only evidence knows", operator.Query{Key: "old", Result: "failed"}, nil},
		{"by a part of one", operator.Query{Part: "evt_new"}, []string{"stripe:evt_new", "stripe:evt_new2"}},
		{"by state", operator.Query{State: "done", Scope: "github"}, []string{"github:old-done"}},
		{"by time", operator.Query{NotSeenFor: 10 * time.Minute}, []string{"github:old", "github:old-done", "stripe:evt_old"}},
		{"by the time of others", operator.Query{SeenWithin: 10 * time.Minute}, []string{"stripe:evt_new", "stripe:evt_new2"}},
		{"by result", operator.Query{Result: "failed"}, []string{"stripe:evt_old"}},
		{"by result and state", operator.Query{Result: "failed", State: "done"}, nil},
		{"observed, with a claim from before and without one", operator.Query{Result: "observed"}, []string{"github:old", "github:seen"}},
		{"observed, by a part of the key", operator.Query{Result: "observed", Part: "se"}, []string{"github:seen"}},
		{"unfinished: by each sender's horizon", operator.Query{Unfinished: true}, []string{"github:old"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Limit = 100
			page, err := d.Find(t.Context(), c.q)
			if got := keys(page); err != nil || !slices.Equal(got, c.want) || page.Next != "" {
				t.Errorf("got %v (next %q), %v; want %v", got, page.Next, err, c.want)
			}
		})
	}
	t.Run("page by page there is each once", func(t *testing.T) {
		for i := range 1200 {
			put("stripe", fmt.Sprint("evt_many", i), lock.StateReleased)
		}
		store.Advance(2 * time.Hour / 2)
		for _, q := range []operator.Query{{Limit: 7}, {Limit: 500}, {Limit: 7, Unfinished: true}} {
			seen := map[string]bool{}
			for {
				page, err := d.Find(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range keys(page) {
					if seen[k] {
						t.Fatalf("%s twice", k)
					}
					seen[k] = true
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			all, err := d.Find(t.Context(), operator.Query{Limit: operator.MostListed, Unfinished: q.Unfinished})
			if err != nil || len(seen) != len(all.Claims) {
				t.Errorf("%+v: %d of %d, %v", q, len(seen), len(all.Claims), err)
			}
		}
	})
	for name, q := range map[string]operator.Query{
		"no limit": {}, "a limit too high": {Limit: operator.MostListed + 1}, "a tag without a value": {Tag: "order", Limit: 1},
		"a state that there isn't": {State: "finished", Limit: 1}, "key and part": {Key: "a", Part: "b", Limit: 1},
		"a result that there isn't": {Result: "finished", Limit: 1}, "a negative age": {SeenWithin: -1, Limit: 1}, "unfinished and a state": {Unfinished: true, State: "done", Limit: 1},
		"a forged page": {After: "AAAA", Limit: 1}, "a page of another question": {After: "eyJGaWx0ZXIiOjl9", Limit: 1},
	} {
		if _, err := d.Find(t.Context(), q); !errors.Is(err, operator.ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShow(t *testing.T) {
	d, _, put := newDesk(t)
	put("stripe", "evt_1", lock.StateUnknown, func(r *lock.Record) { r.Retain = 0 })
	failed := evidence.Entry{
		ID: evidence.ID{1}, Key: lock.KeyOf("shop", "stripe", "evt_1"), First: time.Now().Add(-time.Hour), Last: time.Now(), Count: 1, Result: "failed", Status: 500,
		Facts: evidence.Facts{Text: "evt_1", Attempt: 1, AppStatus: 500, Answer: &evidence.Answer{Size: 9000, Kept: 4, Body: []byte("oops")}},
	}
	seen := failed
	seen.ID, seen.Key, seen.Result, seen.Facts = evidence.ID{2}, lock.KeyOf("shop", "stripe", "seen"), "observed", evidence.Facts{Text: "seen", Remote: "192.0.2.9"}
	if err := d.Evidence.Write(t.Context(), []evidence.Entry{failed, seen}); err != nil {
		t.Fatal(err)
	}
	t.Run("what the app said to an attempt that failed, its body where it was asked for", func(t *testing.T) {
		for _, body := range []bool{false, true} {
			lives, err := d.ShowKey(t.Context(), "", "evt_1", body)
			if err != nil || len(lives) != 1 || len(lives[0].Timeline) != 1 {
				t.Fatalf("%+v, %v", lives, err)
			}
			a := lives[0].Timeline[0].Answer
			if a == nil || a.Size != 9000 || a.Kept != 4 || (string(a.Body) == "oops") != body {
				t.Errorf("with body %v: %+v", body, a)
			}
		}
	})
	t.Run("an event without a claim", func(t *testing.T) {
		lives, err := d.ShowKey(t.Context(), "", "seen", false)
		if err != nil || len(lives) != 1 {
			t.Fatalf("%+v, %v", lives, err)
		}
		c := lives[0].Claim
		if c.State != operator.Absent || c.Key != "seen" || time.Since(c.FirstSeen) < time.Hour || time.Since(c.LastSeen) > time.Minute || lives[0].Timeline[0].Remote != "192.0.2.9" {
			t.Errorf("%+v", lives[0])
		}
		if life, err := d.Show(t.Context(), "stripe", c.Digest, false); err != nil || life.Claim.Key != "seen" {
			t.Errorf("%+v, %v", life, err)
		}
		outcomes, err := d.Decide(t.Context(), operator.Decision{Verb: "done", Who: "alice", Reason: "r", Claims: []operator.Ref{c.Ref()}})
		if err != nil || outcomes[0].Code != "not_found" {
			t.Errorf("decided: %+v, %v", outcomes, err)
		}
	})
	t.Run("an event that nobody knows", func(t *testing.T) {
		if lives, err := d.ShowKey(t.Context(), "", "nobody", false); !errors.Is(err, operator.ErrNotFound) {
			t.Errorf("%+v, %v", lives, err)
		}
	})
}

func TestDecide(t *testing.T) {
	d, _, put := newDesk(t)
	put("stripe", "evt_1", lock.StateUnknown, func(r *lock.Record) { r.Retain, r.Request = 0, lock.Seal([]byte("whole")) })
	put("stripe", "evt_2", lock.StateUnknown, func(r *lock.Record) { r.Retain, r.Request = 0, lock.Seal([]byte("partial")) })
	put("stripe", "evt_3", lock.StateUnknown, func(r *lock.Record) { r.Retain = 0 })
	var refs []operator.Ref
	for _, key := range []string{"evt_1", "evt_2", "evt_3"} {
		lives, err := d.ShowKey(t.Context(), "", "stripe:"+key, false)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, lives[0].Claim.Ref())
	}
	rerun := operator.Decision{Verb: "rerun", Who: "alice", Reason: "r", Claims: refs}
	if _, err := d.Decide(t.Context(), rerun); !errors.Is(err, operator.ErrNoForwarding) {
		t.Errorf("where nobody forwards: %v", err)
	}
	var forwarded []string
	d.Forwardable = func(_ lock.Key, request []byte) error {
		if string(request) == "partial" {
			return errors.New("its body was not kept")
		}
		return nil
	}
	d.Rerun = func(_ context.Context, _ string, request []byte) (operator.Run, error) {
		forwarded = append(forwarded, string(request))
		return operator.Run{Result: "fresh", Attempt: 2, Status: 200}, nil
	}
	var told []string
	d.Decided = func(v lock.Verb, _ operator.Decision, o operator.Outcome) { told = append(told, v.String()+" "+o.Key) }
	outcomes, err := d.Decide(t.Context(), rerun)
	if err != nil {
		t.Fatal(err)
	}
	if o := outcomes[0]; o.Code != "" || o.Run == nil || o.Run.Attempt != 2 || !slices.Equal(forwarded, []string{"whole"}) {
		t.Errorf("rerun: %+v, forwarded %q", o, forwarded)
	}
	if o := outcomes[1]; o.Code != "refused" || !strings.Contains(o.Error, "its body was not kept") {
		t.Errorf("what can't be forwarded: %+v", o)
	}
	if o := outcomes[2]; o.Code != "refused" || !strings.Contains(o.Error, "was not kept") {
		t.Errorf("what was not kept: %+v", o)
	}
	if lives, err := d.ShowKey(t.Context(), "stripe", "evt_2", false); err != nil || lives[0].Claim.State != "unknown" {
		t.Errorf("a refused rerun changed the claim: %+v, %v", lives, err)
	}
	if !slices.Equal(told, []string{"rerun evt_1"}) {
		t.Errorf("told of %v", told)
	}
	for name, change := range map[string]func(*operator.Decision){
		"nobody":              func(d *operator.Decision) { d.Who = " " },
		"no reason":           func(d *operator.Decision) { d.Reason = "\t" },
		"no claim":            func(d *operator.Decision) { d.Claims = nil },
		"a claim twice":       func(d *operator.Decision) { d.Claims = append(d.Claims, d.Claims[0]) },
		"another verb":        func(d *operator.Decision) { d.Verb = "delete" },
		"a status, reopening": func(d *operator.Decision) { d.Status = 201 },
		"now, for forget":     func(d *operator.Decision) { d.Verb, d.Now = "forget", true },
		"done with a failure": func(d *operator.Decision) { d.Verb, d.Status = "done", 500 },
	} {
		decision := operator.Decision{Verb: "reopen", Who: "alice", Reason: "r", Claims: slices.Clone(refs)}
		change(&decision)
		if _, err := d.Decide(t.Context(), decision); !errors.Is(err, operator.ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// B72 Forgetting may be said again: with Redis each replica has evidence of its own.
func TestForgetAgain(t *testing.T) {
	d, _, put := newDesk(t)
	put("stripe", "evt_1", lock.StateDone)
	for range 2 {
		err := d.Evidence.Write(t.Context(), []evidence.Entry{{
			ID: evidence.ID{1}, Key: lock.KeyOf("shop", "stripe", "evt_1"), First: time.Now(), Last: time.Now(), Count: 1, Result: "fresh", Facts: evidence.Facts{Remote: "192.0.2.1"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		lives, err := d.ShowKey(t.Context(), "stripe", "evt_1", false)
		if err != nil {
			t.Fatal(err)
		}
		outcomes, err := d.Decide(t.Context(), operator.Decision{Verb: "forget", Who: "alice", Reason: "asked to", Claims: []operator.Ref{lives[0].Claim.Ref()}})
		if err != nil || outcomes[0].Code != "" || outcomes[0].State != "tombstone" {
			t.Errorf("%+v, %v", outcomes, err)
		}
		if page, err := d.Find(t.Context(), operator.Query{Key: "evt_1", Limit: 9}); err != nil || len(page.Claims) != 1 || page.Claims[0].State != "tombstone" {
			t.Errorf("what was forgotten is not found by its key: %+v, %v", page, err)
		}
		lives, err = d.ShowKey(t.Context(), "stripe", "evt_1", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lives[0].Timeline {
			if m.Kind != "decision" || m.Remote != "" {
				t.Errorf("known after it was forgotten: %+v", m)
			}
		}
	}
}

// What is forgotten leaves its event key in no guard either.
func TestForgetGuards(t *testing.T) {
	d, store, put := newDesk(t)
	d.Scopes = func() []operator.Scope {
		return []operator.Scope{{Name: "stripe", Retention: time.Hour, Guarded: true}}
	}
	put("stripe", "erika", lock.StateDone)
	put("stripe", "erika-2", lock.StateDone)
	for _, text := range []string{"erika", "erika-2"} {
		for _, guard := range []string{"first", "second"} {
			alias := lock.Record{
				Key: lock.KeyOf("shop", "stripe", " guard "+text+guard), Text: text, Role: lock.RoleAlias,
				Names: lock.KeyOf("shop", "stripe", text).Digest, Version: lock.NewVersion(), Retain: time.Hour,
			}
			if _, err := store.Apply(t.Context(), []lock.Change{{Next: alias, Seen: true}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	lives, err := d.ShowKey(t.Context(), "stripe", "erika", false)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := d.Decide(t.Context(), operator.Decision{Verb: "forget", Who: "alice", Reason: "asked to", Claims: []operator.Ref{lives[0].Claim.Ref()}})
	if err != nil || outcomes[0].Code != "" || outcomes[0].Error != "" {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	store.Advance(time.Second)
	page, err := d.Find(t.Context(), operator.Query{Part: "erika", Limit: 9})
	if got := keys(page); err != nil || !slices.Equal(got, []string{"stripe:erika-2", "stripe:erika-2", "stripe:erika-2"}) {
		t.Errorf("left are %v, %v", got, err)
	}
}

// A blind store of evidence can't be read.
type blind struct{ evidence.Store }

var errBlind = errors.New("the file is damaged")

func (blind) Find(context.Context, evidence.Query) ([]evidence.Entry, error) { return nil, errBlind }
func (blind) Figures(context.Context, string, time.Time) ([]evidence.Figure, error) {
	return nil, errBlind
}

func TestWithoutEvidence(t *testing.T) {
	d, _, put := newDesk(t)
	put("stripe", "evt_1", lock.StateDone)
	for why, kept := range map[string]evidence.Store{"": nil, errBlind.Error(): blind{}} {
		d.Evidence = kept
		s, err := d.Stats(t.Context(), 0)
		if err != nil || s.Evidence || s.EvidenceError != why || s.Claims["stripe"]["done"] != 1 {
			t.Errorf("stats %+v, %v", s, err)
		}
		lives, err := d.ShowKey(t.Context(), "", "evt_1", false)
		if err != nil || lives[0].Evidence || lives[0].EvidenceError != why || lives[0].Claim.State != "done" {
			t.Errorf("%+v, %v", lives, err)
		}
		if _, err := d.ShowKey(t.Context(), "", "evt_2", false); !errors.Is(err, operator.ErrNotFound) {
			t.Errorf("of an event that nobody knows: %v", err)
		}
	}
}
