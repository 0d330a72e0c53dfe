package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"oncegate/internal/shop"
)

// A play is the deliveries that both shops get, in the order in which they are
// sent.
type play struct {
	events []*sampler
	order  []copyOf
}

// A copyOf is the n-th delivery of an event.
type copyOf struct{ event, n int }

// newPlay makes the events. The first two deliveries of each are sent side by
// side, as by a provider that is impatient; the others come at any time later.
func newPlay(s *stage) (*play, error) {
	p := &play{}
	route := s.service.current.Load().Routes[0]
	for i := range demoEvents {
		event, err := newSampler(route, s.front, fmt.Sprintf("evt_demo%03d", i+1))
		if err != nil {
			return nil, err
		}
		p.events = append(p.events, event)
	}
	for _, event := range rand.Perm(demoEvents) {
		p.order = append(p.order, copyOf{event, 0}, copyOf{event, 1})
	}
	late := len(p.order)
	for n := 2; n < demoCopies; n++ {
		for event := range demoEvents {
			p.order = append(p.order, copyOf{event, n})
		}
	}
	rest := p.order[late:]
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return p, nil
}

// A showing is what came of sending all deliveries to one shop.
type showing struct {
	answers [][]answer // by event
	effects []shop.Effect
}

// send sends all deliveries. What goes wrong with one is in its answer.
func (p *play) send(ctx context.Context, target *url.URL) *showing {
	s := &showing{answers: make([][]answer, len(p.events))}
	for i := range s.answers {
		s.answers[i] = make([]answer, demoCopies)
	}
	client := newClient(30 * time.Second)
	var group errgroup.Group
	group.SetLimit(demoParallel)
	for _, c := range p.order {
		group.Go(func() error {
			d, err := p.events[c.event].signed(c.n, time.Now())
			if err != nil {
				s.answers[c.event][c.n] = answer{result: "not signed"}
				return err
			}
			s.answers[c.event][c.n] = deliver(ctx, client, target, d)
			return nil
		})
	}
	// A delivery that could not be signed has no good answer, which is found.
	_ = group.Wait()
	return s
}

// figures are the rows of the demo's table.
type figures struct {
	sent, good, charges, enrolments, twice int
	fresh, duplicates                      int
}

func (s *showing) figures() (f figures) {
	for _, event := range s.answers {
		for _, a := range event {
			f.sent++
			if a.good() {
				f.good++
			}
			switch a.result {
			case "fresh":
				f.fresh++
			case "replay", "waited":
				f.duplicates++
			}
		}
	}
	for _, e := range s.effects {
		f.charges += e.Charges
		f.enrolments += e.Enrolments
		if e.Charges > 1 {
			f.twice++
		}
	}
	return f
}

// wrong says what differs from each event having taken effect that many times.
func (s *showing) wrong(times int) error {
	if f := s.figures(); f.good != f.sent {
		return fmt.Errorf("%s not answered 2xx", countDeliveries(f.sent-f.good))
	}
	if len(s.effects) != demoEvents {
		return fmt.Errorf("the shop saw %d events, not %d", len(s.effects), demoEvents)
	}
	for _, e := range s.effects {
		if e.Runs != times || e.Charges != times || e.Enrolments != times {
			return fmt.Errorf("event %s ran %d times, not %d", e.Event, e.Runs, times)
		}
	}
	return nil
}

// wrongAnswers says what is wrong with the answers that oncegate gave: each
// event's first delivery got the shop's answer, and every other the same bytes.
func (s *showing) wrongAnswers() error {
	if f := s.figures(); f.fresh != demoEvents || f.duplicates != demoEvents*(demoCopies-1) {
		return fmt.Errorf("%d deliveries were answered by the shop and %d from the store", f.fresh, f.duplicates)
	}
	for i, event := range s.answers {
		for _, a := range event {
			if a.body != event[0].body || a.status != event[0].status {
				return errors.New("the deliveries of one event got different answers: " + fmt.Sprint(i))
			}
		}
	}
	return nil
}
