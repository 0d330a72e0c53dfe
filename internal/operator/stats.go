package operator

import (
	"context"
	"time"

	"oncegate/lock"
)

// Stats are figures of deliveries and of claims.
type Stats struct {
	// Since is from when deliveries are counted; as far back as evidence goes,
	// where it was not said.
	Since  *time.Time    `json:"since,omitempty"`
	Routes []RouteFigure `json:"routes"`
	// Evidence is false where none is kept, or it could not be read, as
	// EvidenceError says; then there are no routes.
	Evidence      bool                      `json:"evidence"`
	EvidenceError string                    `json:"evidence_error,omitempty"`
	Claims        map[string]map[string]int `json:"claims"` // scope → state → how many
}

// A RouteFigure counts the deliveries of a route that had an event key. Those of
// a batch count once for each of its events.
type RouteFigure struct {
	Route    string `json:"route"`
	Provider string `json:"provider,omitempty"`
	// Deliveries are First (of events not seen before) and Duplicates, of which
	// Late came more than five minutes after the first.
	Deliveries int            `json:"deliveries"`
	First      int            `json:"first"`
	Duplicates int            `json:"duplicates"`
	Late       int            `json:"late_duplicates"`
	Results    map[string]int `json:"results"`
}

// Stats returns figures of the deliveries that came within the last while; all
// that evidence has, where within is 0.
func (d *Desk) Stats(ctx context.Context, within time.Duration) (*Stats, error) {
	counts, err := d.Catalog.Count(ctx, d.Namespace)
	if err != nil {
		return nil, err
	}
	s := &Stats{Routes: []RouteFigure{}, Claims: map[string]map[string]int{}}
	for at, n := range counts.Claims {
		if at.Scope == lock.DutyScope || at.State == lock.StateNone {
			continue
		}
		if s.Claims[at.Scope] == nil {
			s.Claims[at.Scope] = map[string]int{}
		}
		s.Claims[at.Scope][at.State.String()] = n
	}
	if d.Evidence == nil {
		return s, nil
	}
	since := time.UnixMicro(0)
	if within > 0 {
		since = time.Now().Add(-within).UTC()
		s.Since = &since
	}
	figures, err := d.Evidence.Figures(ctx, d.Namespace, since)
	if s.Evidence = err == nil; err != nil { // the claims can be counted all the same
		s.EvidenceError = err.Error()
	}
	for _, f := range figures { // ordered by route and provider
		last := len(s.Routes) - 1
		if last < 0 || s.Routes[last].Route != f.Route || s.Routes[last].Provider != f.Provider {
			s.Routes = append(s.Routes, RouteFigure{Route: f.Route, Provider: f.Provider, Results: map[string]int{}})
			last++
		}
		r := &s.Routes[last]
		r.Deliveries += f.Deliveries
		r.Duplicates += f.Duplicates
		r.Late += f.Late
		r.First = r.Deliveries - r.Duplicates
		r.Results[f.Result] += f.Deliveries
	}
	return s, nil
}
