package operator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// A Query selects claims; zero fields select all.
type Query struct {
	Scope, State string
	// Key is a whole event key, Part a part of one.
	Key, Part string
	// Tag is name=value.
	Tag string
	// Result selects the claims of deliveries that ended with this word, as far as
	// evidence knows.
	Result string
	// Unfinished selects those that are not done and whose sender has given up.
	Unfinished bool
	// SeenWithin and NotSeenFor bound the age of the last delivery that changed
	// something; of the last one at all, with Result.
	SeenWithin, NotSeenFor time.Duration
	// Limit is how many are returned at most; After goes on after a Page.
	Limit int
	After string
}

// A Page is what was found, ordered by scope.
type Page struct {
	Claims []Claim `json:"claims"`
	// Next is what After has to be to go on; empty where there is no more.
	Next string `json:"next,omitempty"`
}

// MostListed bounds a Query's Limit.
const MostListed = 10_000

// listPage is how many records are asked for at a time.
const listPage = 500

// Find returns the claims that a query selects. Its error is ErrQuery or the
// store's.
func (d *Desk) Find(ctx context.Context, q Query) (Page, error) {
	if q.Result != "" {
		return d.findByResult(ctx, q)
	}
	filters, err := d.filters(&q)
	if err != nil {
		return Page{}, err
	}
	if q.Key != "" && !q.Unfinished {
		return d.findByKey(ctx, &q)
	}
	at, err := decodeAfter(q.After, len(filters))
	if err != nil {
		return Page{}, err
	}
	page := Page{Claims: []Claim{}}
	for n := at.Filter; n < len(filters); n++ {
		after := lock.Cursor{}
		if n == at.Filter {
			after = at.Cursor
		}
		for {
			found, err := d.Catalog.List(ctx, filters[n], after, listPage)
			if err != nil {
				return Page{}, err
			}
			now := time.Now()
			for i := range found {
				r := &found[i]
				if r.Scope == lock.DutyScope || q.Key != "" && r.Text != q.Key {
					continue
				}
				if len(page.Claims) == q.Limit {
					page.Next = encodeAfter(position{n, after})
					return page, nil
				}
				page.Claims = append(page.Claims, ClaimOf(r, now))
				after = lock.Cursor{Scope: r.Scope, Digest: r.Digest}
			}
			if len(found) < listPage {
				break
			}
			last := &found[len(found)-1]
			after = lock.Cursor{Scope: last.Scope, Digest: last.Digest}
		}
	}
	return page, nil
}

// findByKey reads the claims that a whole key may stand for, which is quick
// however many there are, and finds what was forgotten too.
func (d *Desk) findByKey(ctx context.Context, q *Query) (Page, error) {
	page := Page{Claims: []Claim{}}
	keys := d.keys(q.Scope, q.Key)
	if len(keys) == 0 || q.After != "" {
		return page, nil
	}
	records, err := d.Store.Read(ctx, keys)
	if err != nil {
		return Page{}, err
	}
	for i := range records {
		if r := &records[i]; r.Exists() && matches(r, q) && len(page.Claims) < q.Limit {
			page.Claims = append(page.Claims, ClaimOf(r, time.Now()))
		}
	}
	return page, nil
}

// filters are what the store is asked, one after the other.
func (d *Desk) filters(q *Query) ([]lock.Filter, error) {
	f := lock.Filter{
		Namespace: d.Namespace, Scope: q.Scope, TextPart: q.Part, Tag: q.Tag, SeenWithin: q.SeenWithin, NotSeenFor: q.NotSeenFor,
	}
	switch {
	case q.Limit < 1 || q.Limit > MostListed:
		return nil, fmt.Errorf("limit is %w: it must be between 1 and %d", ErrQuery, MostListed)
	case q.Tag != "" && !strings.Contains(q.Tag, "="):
		return nil, fmt.Errorf("tag is %w: it must be name=value, as in order=4471", ErrQuery)
	case q.Key != "" && q.Part != "":
		return nil, fmt.Errorf("key and part are %w: they exclude each other", ErrQuery)
	case q.Result != "" && !slices.Contains(telemetry.Results(), telemetry.Result(q.Result)):
		return nil, fmt.Errorf("result is %w: it must be one of Oncegate-Result's words, as in fresh", ErrQuery)
	case q.SeenWithin < 0 || q.NotSeenFor < 0:
		return nil, fmt.Errorf("an age is %w: it can't be negative", ErrQuery)
	case q.Key != "":
		f.TextPart = q.Key
	}
	if q.State != "" {
		states := []lock.State{lock.StateRunning, lock.StateDone, lock.StateReleased, lock.StateUnknown, lock.StateTombstone}
		i := slices.IndexFunc(states, func(s lock.State) bool { return s.String() == q.State })
		if i < 0 {
			return nil, fmt.Errorf("state is %w: it must be running, done, released, unknown or tombstone", ErrQuery)
		}
		f.State = states[i]
	}
	if !q.Unfinished {
		return []lock.Filter{f}, nil
	}
	if q.State != "" {
		return nil, fmt.Errorf("state is %w: it can't be said of unfinished claims", ErrQuery)
	}
	var filters []lock.Filter
	for _, s := range d.Scopes() {
		if q.Scope != "" && s.Name != q.Scope {
			continue
		}
		for _, state := range []lock.State{lock.StateRunning, lock.StateReleased, lock.StateUnknown} {
			one := f
			one.Scope, one.State, one.NotSeenFor = s.Name, state, max(f.NotSeenFor, s.Horizon)
			filters = append(filters, one)
		}
	}
	return filters, nil
}

// findByResult asks evidence, and reads the claims that it names. An event that
// was only observed has none, and is listed as absent.
func (d *Desk) findByResult(ctx context.Context, q Query) (Page, error) {
	if _, err := d.filters(&q); err != nil {
		return Page{}, err
	}
	if d.Evidence == nil {
		return Page{}, fmt.Errorf("result is %w: no evidence is kept here", ErrQuery)
	}
	if q.After != "" || q.Unfinished {
		return Page{}, fmt.Errorf("the question is %w: with result there is neither unfinished nor a next page", ErrQuery)
	}
	ask := evidence.Query{Namespace: d.Namespace, Scope: q.Scope, Result: q.Result, Limit: MostListed}
	if q.SeenWithin > 0 {
		ask.Since = time.Now().Add(-q.SeenWithin)
	}
	entries, err := d.Evidence.Find(ctx, ask)
	if err != nil {
		return Page{}, err
	}
	page := Page{Claims: []Claim{}}
	known := map[lock.Key][]evidence.Entry{}
	var keys []lock.Key
	for i := len(entries) - 1; i >= 0; i-- { // the newest first
		k := entries[i].Key
		if known[k] == nil {
			keys = append(keys, k)
		}
		known[k] = append(known[k], entries[i])
	}
	for some := range slices.Chunk(keys, 64) {
		records, err := d.Store.Read(ctx, some)
		if err != nil {
			return Page{}, err
		}
		for i := range records {
			if len(page.Claims) == q.Limit {
				return page, nil
			}
			if r := &records[i]; r.Exists() && matches(r, &q) {
				page.Claims = append(page.Claims, ClaimOf(r, time.Now()))
			}
			if c := absent(some[i], known[some[i]]); !records[i].Exists() && observed(&c, &q) {
				page.Claims = append(page.Claims, c)
			}
		}
	}
	return page, nil
}

// matches says of a record what the store says elsewhere.
func matches(r *lock.Record, q *Query) bool {
	return (q.State == "" || r.State.String() == q.State) &&
		(q.Key == "" || has(r, q.Key)) && strings.Contains(r.Text, q.Part) &&
		(q.Tag == "" || slices.Contains(r.Tags, q.Tag)) &&
		(q.SeenWithin == 0 || q.Result != "" || r.LastSeen <= q.SeenWithin) &&
		(q.NotSeenFor == 0 || r.LastSeen > q.NotSeenFor)
}

// has reports whether a record is a key's, by its digest: what was forgotten has no
// text.
func has(r *lock.Record, key string) bool {
	alone, _ := strings.CutPrefix(key, r.Scope+":")
	return r.Digest == lock.KeyOf(r.Namespace, r.Scope, key).Digest || r.Digest == lock.KeyOf(r.Namespace, r.Scope, alone).Digest
}

// observed reports whether an event without a claim was asked for.
func observed(c *Claim, q *Query) bool {
	return q.Result == string(telemetry.ResultObserved) && q.State == "" && q.Tag == "" &&
		(q.Key == "" || c.Key == q.Key) && strings.Contains(c.Key, q.Part) &&
		(q.NotSeenFor == 0 || time.Since(c.LastSeen) > q.NotSeenFor)
}

// A position is where a page ended.
type position struct {
	Filter int
	Cursor lock.Cursor
}

func encodeAfter(p position) string {
	text, _ := json.Marshal(p) // a number, a string and a digest always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeAfter(s string, filters int) (p position, err error) {
	if s == "" {
		return p, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.Filter < 0 || p.Filter >= filters {
		return p, fmt.Errorf("after is %w: it must be the next of an earlier page", ErrQuery)
	}
	return p, nil
}
