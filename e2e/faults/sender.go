package faults

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"oncegate/e2e/harness"
)

// A sender delivers as providers do: what is not answered 2xx in time is sent
// again, to either gate.
type sender struct {
	gates []*gate
	http  *harness.Sender

	mu         sync.Mutex // guards deliveries
	deliveries []*Delivery
}

// deliver sends once, and notes what came back.
func (s *sender) deliver(ctx context.Context, e harness.Event, to int, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d := &Delivery{Event: e.ID, Gate: to, Sent: time.Now()}
	a := s.http.Send(ctx, s.gates[to].URL+harness.WebhookPath, e.Delivery())
	d.Answered = time.Now()
	if a.Err == nil {
		d.Status, d.Result, d.Body = a.Status, a.Result(), a.Body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = append(s.deliveries, d)
	return d.OK()
}

// untilOK sends an event until it is answered 2xx or ctx is over. Some senders
// send twice at a time, and some wait so short that the answer finds nobody.
func (s *sender) untilOK(ctx context.Context, e harness.Event, chance *rand.Rand) {
	if !rest(ctx, between(chance, 0, spread)) {
		return
	}
	var twin sync.WaitGroup
	defer twin.Wait()
	for tries := 0; ctx.Err() == nil; tries++ {
		to, patience := chance.IntN(2), 8*time.Second
		if chance.IntN(4) == 0 {
			patience = between(chance, 50*ms, 900*ms)
		}
		if tries == 0 && chance.IntN(3) == 0 {
			twin.Go(func() { s.deliver(ctx, e, 1-to, 8*time.Second) })
		}
		if s.deliver(ctx, e, to, patience) || !rest(ctx, between(chance, 50*ms, 500*ms)) {
			return
		}
	}
}

// replays sends each event to each gate once more, until it is answered.
func (s *sender) replays(ctx context.Context, events []harness.Event) {
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, 16)
	for _, e := range events {
		for to := range s.gates {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				for !s.deliver(ctx, e, to, 8*time.Second) && rest(ctx, 200*ms) {
				}
			})
		}
	}
}

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
