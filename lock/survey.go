package lock

import (
	"context"
	"maps"
	"time"
)

// A survey is what was found when all records of a namespace were looked at. In
// a large store that takes minutes, so it has no place in a round: it is made
// beside, and rests for twenty times as long as it took.
type survey struct {
	counts Counts
	// unfinished released claims, by scope; at most MostUnfinished of each.
	unfinished map[string]int
}

const (
	surveyRest = 20
	// What takes longer is given up, and counts as failed.
	surveyTime = 30 * time.Minute
)

// A surveyor makes surveys, one at a time. It belongs to the goroutine of its
// Background.
type surveyor struct {
	last  *survey       // nil: none was made yet
	under bool          // one is under way
	next  time.Time     // when the next one may begin
	ended chan surveyed // with room for one
	wait  time.Duration // how long a round waits for one at most
}

// A surveyed says how a survey ended.
type surveyed struct {
	survey *survey
	err    error
	took   time.Duration
}

// survey begins a survey where it is time, and takes in one that has ended. It
// waits for it a little: so a small store is surveyed within the round.
func (b *Background) survey(ctx context.Context) error {
	s := &b.surveyor
	if !s.under {
		if time.Now().Before(s.next) {
			return nil
		}
		s.under = true
		b.done.Go(func() { s.ended <- b.look(b.life) })
	}
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	select {
	case end := <-s.ended:
		s.under = false
		if end.err != nil {
			s.next = time.Now().Add(max(b.o.FiguresEvery, end.took))
			return end.err
		}
		s.last, s.next = end.survey, time.Now().Add(max(b.o.FiguresEvery, surveyRest*end.took))
	case <-ctx.Done():
	}
	return nil
}

// figures are what the last survey has found.
func (s *surveyor) figures() *Figures {
	f := &Figures{Claims: map[ScopeState]int{}, Unfinished: map[string]int{}, Unknown: map[string]time.Duration{}, Surveyed: s.last != nil}
	if s.last == nil {
		return f
	}
	f.Over = s.last.counts.Over
	maps.Copy(f.Unfinished, s.last.unfinished)
	for at, n := range s.last.counts.Claims {
		if at.Scope != DutyScope && at.State != StateNone {
			f.Claims[at] = n
		}
	}
	return f
}

// look makes a survey.
func (b *Background) look(ctx context.Context) (end surveyed) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	start := time.Now()
	defer func() { end.took = time.Since(start) }()
	counts, err := b.catalog.Count(ctx, b.o.Namespace)
	if err != nil {
		return surveyed{err: err}
	}
	found := &survey{counts: counts, unfinished: map[string]int{}}
	for scope, horizon := range b.o.Horizons {
		if counts.Claims[ScopeState{scope, StateReleased}] == 0 {
			continue
		}
		released, err := b.catalog.List(ctx, Filter{Namespace: b.o.Namespace, Scope: scope, State: StateReleased, NotSeenFor: horizon}, Cursor{}, MostUnfinished)
		if err != nil {
			return surveyed{err: err}
		}
		found.unfinished[scope] = len(released)
	}
	return surveyed{survey: found}
}
