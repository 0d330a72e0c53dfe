package main

import (
	"context"
	"errors"
	"time"
)

// Times at the end that are not configured.
const (
	lastAnswers   = time.Second     // for answers to attempts that were cut
	lastTelemetry = 3 * time.Second // for exporting what is left
	lastProbes    = time.Second
	lastOperators = 2 * time.Second
	lastEvidence  = 2500 * time.Millisecond
	lastLog       = 500 * time.Millisecond // where nobody reads it
)

// shortly is a context for what ends soon, whatever it has done.
func shortly(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}

// stop ends the service in the order in which nothing is lost: it says that it
// is not ready, serves on for a while, ending each connection with its next
// answer, takes no more connections, lets what is in hand finish until the
// deadline, marks what is left as unknown, and then takes down what was under it.
func (s *service) stop() error {
	c := s.current.Load()
	s.leaving.begun.Store(true)
	s.health.Drain()
	if c.DrainDelay > 0 {
		time.Sleep(c.DrainDelay)
	}
	// No reload comes after this.
	s.endWork()
	s.work.Wait()
	s.background.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.DrainTimeout)
	defer cancel()
	shut := make(chan error, 1)
	go func() { shut <- s.public.Shutdown(ctx) }()
	owed := s.gate.Close(ctx)
	// Every attempt has been settled, or cut and settled as unknown.
	err := <-shut
	s.handler.Cut()
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("the time to drain is over; what is left is cut", "drain_timeout", c.DrainTimeout.String())
		err = s.closePublic()
	}
	err = errors.Join(err, owed, s.closeAdmin(), s.handler.Close())
	err = errors.Join(err, s.closeEvidence(), s.closeJournal(), s.store.Close(), s.farewell())
	s.serving.Wait()
	if err != nil {
		s.log.Error("stopped, and not everything ended well", "error", err)
	}
	return err
}

// closePublic lets the answers of attempts that were cut leave, and then closes
// every connection.
func (s *service) closePublic() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	err := s.public.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return s.public.Close()
	}
	return err
}

// farewell exports what is left to export, and ends the health listener last. A
// collector that is out of reach makes no failure of a clean stop.
func (s *service) farewell() error {
	if err := s.export(); err != nil {
		s.log.Warn("not all telemetry was exported", "error", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastProbes)
	defer cancel()
	if err := s.health.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // a scrape that hangs
}

func (s *service) export() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastTelemetry)
	defer cancel()
	return s.tel.Shutdown(ctx)
}
