// Package openstore lets oncegate start, and traffic pass, while its store is
// out of reach.
//
//	store, err := openstore.Open(ctx, backend, openstore.Options{Accept: accepted, Log: log})
//	if err != nil { ... } // the store answers, and is unfit: don't start
//	defer store.Close()
//
// # Examined before it is used
//
// Open examines the backend once. A backend that answers and would break its
// promise is an error, unless the weakness is accepted by name. One that does
// not answer is an outage: the Store answers every call with
// lock.ErrUnavailable, examines the backend again and again in the background,
// and lets calls through once it was found fit. So a claim is never kept in a
// store that nobody has looked at, however late the store comes.
//
// # Examined again and again
//
// Settings change, and after a failover another server answers. So the backend is
// examined every ten minutes, and soon after it was out of reach. Once it is found
// unfit nothing new is claimed in it, until it was put right; what was begun goes
// on, since to leave it unwritten would make it worse.
//
// # What is known without asking
//
// State tells how the last call went, for probes and metrics that must not ask
// the store themselves.
package openstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oncegate/lock"
)

// A Backend is a store with all its sides.
type Backend interface {
	lock.Store
	lock.Catalog
	lock.Checker
}

// Options say what Open needs.
type Options struct {
	// Accept names weaknesses that don't keep the store from being used.
	Accept []string
	// Timeout bounds the first examination, since traffic waits for it. Zero:
	// 5 s. The later ones have a minute: tables may have to be changed.
	Timeout time.Duration
	// Log is told what the background finds; required.
	Log *slog.Logger
}

// Pauses between two examinations of a store that is out of reach.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second

	laterTimeout = time.Minute
)

// Pauses between two examinations of a store that is used: the second where the
// last one did not find it fit.
const (
	lookEvery = 10 * time.Minute
	lookAgain = 30 * time.Second
)

// A Store is a Backend that is used only once it was found fit. Its methods may
// be called concurrently.
type Store struct {
	backend Backend
	o       Options
	fit     chan struct{} // closed once the backend was found fit
	stop    context.CancelFunc
	wg      sync.WaitGroup
	state   atomic.Int32
	// refusing says why nothing new is claimed; nil: it is.
	refusing atomic.Pointer[error]
	unknown  atomic.Int64
	// said is what was logged of the last examination. One examination is under
	// way at a time.
	said string
}

// A State says how the last call of the store went.
type State int32

// The states.
const (
	Unasked State = iota
	Reachable
	Unreachable
)

// A WeakError says in which ways a store's server would break its promise. It
// is a lock.ErrUnfit.
type WeakError []lock.Weakness

// Error names each weakness, says what to change, and how to accept it.
func (e WeakError) Error() string {
	text := "the store would not keep what it promises"
	for _, w := range e {
		text += fmt.Sprintf("; %s: %s (or accept it: store.accept_weak: [%s])", w.Name, w.Detail, w.Name)
	}
	return text
}

// Unwrap returns lock.ErrUnfit.
func (e WeakError) Unwrap() error { return lock.ErrUnfit }

// Open examines the backend, and takes it over if it returns no error. Its error
// is a lock.ErrUnfit: a WeakError, or what the backend itself said. A backend
// that is out of reach is no error; see the package comment. Where ctx ends
// before the backend has answered, that is the same as no answer.
func Open(ctx context.Context, backend Backend, o Options) (*Store, error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	s := &Store{backend: backend, o: o, fit: make(chan struct{})}
	life, stop := context.WithCancel(context.Background())
	s.stop = stop
	err := s.examine(ctx, o.Timeout)
	switch {
	case err == nil:
		close(s.fit)
	case errors.Is(err, lock.ErrUnfit):
		stop()
		return nil, err
	default:
		o.Log.Error("the store is out of reach; what needs no claim passes, and the store is tried again until it answers", "error", err)
	}
	s.wg.Go(func() {
		if s.ready() || s.keepTrying(life) {
			s.keepLooking(life)
		}
	})
	return s, nil
}

// keepTrying examines the backend until it is fit, and reports whether it is, or
// life is over. Unfit is not the end here: traffic is passing already, and an
// operator may put it right.
func (s *Store) keepTrying(life context.Context) bool {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		if !sleep(life, pause) {
			return false
		}
		err := s.examine(life, max(s.o.Timeout, laterTimeout))
		switch {
		case err == nil:
			close(s.fit)
			s.o.Log.Info("the store answers and is fit; deliveries are claimed from now on")
			return true
		case life.Err() != nil:
			return false
		case errors.Is(err, lock.ErrUnfit):
			s.o.Log.Error("the store answers, and is not used: it is unfit", "error", err)
		default:
			s.o.Log.Warn("the store is still out of reach", "error", err)
		}
	}
}

// keepLooking examines the backend from time to time until life is over.
func (s *Store) keepLooking(life context.Context) {
	for pause := lookEvery; sleep(life, pause); {
		pause = lookAgain
		err := s.examine(life, max(s.o.Timeout, laterTimeout))
		switch {
		case err == nil:
			pause = lookEvery
			if s.refusing.Swap(nil) != nil {
				s.o.Log.Info("the store is fit again; deliveries are claimed from now on")
			}
		case errors.Is(err, lock.ErrUnfit):
			if s.refusing.Swap(&err) == nil {
				s.o.Log.Error("the store has become unfit: nothing new is claimed until it is put right", "error", err)
			}
		default: // out of reach, which its calls say themselves
		}
	}
}

// sleep reports whether d has passed before life was over.
func sleep(life context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-life.Done():
		return false
	}
}

// examine asks the backend for its weaknesses, and notes what can't be learned.
func (s *Store) examine(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found, err := s.backend.Check(ctx)
	s.note(err)
	if err != nil {
		return err
	}
	var weak WeakError
	var accepted, unknown []lock.Weakness
	for _, w := range found {
		switch {
		case slices.Contains(s.o.Accept, w.Name):
			accepted = append(accepted, w)
		case w.Unknown:
			unknown = append(unknown, w)
		default:
			weak = append(weak, w)
		}
	}
	s.unknown.Store(int64(len(unknown)))
	s.say(accepted, unknown)
	if weak != nil {
		return weak
	}
	return nil
}

// say logs what is let pass, where that has changed.
func (s *Store) say(accepted, unknown []lock.Weakness) {
	now := fmt.Sprint(accepted, unknown)
	if now == s.said {
		return
	}
	s.said = now
	for _, w := range accepted {
		s.o.Log.Warn("a weakness of the store is accepted by configuration", "weakness", w.Name, "detail", w.Detail)
	}
	for _, w := range unknown {
		s.o.Log.Warn("the store could not be asked about a weakness", "weakness", w.Name, "detail", w.Detail)
	}
}

// note keeps how a call went. What the caller's own context cut short says
// nothing of the store, unless the store says so.
func (s *Store) note(err error) {
	switch {
	case err == nil || errors.Is(err, lock.ErrUnfit):
		s.state.Store(int32(Reachable))
	case errors.Is(err, lock.ErrUnavailable):
		s.state.Store(int32(Unreachable))
	}
}

// State tells how the last call of the store went. It does not ask it.
func (s *Store) State() State { return State(s.state.Load()) }

// Unknown is how many weaknesses the backend could not be asked about when it was
// last examined, those left out that are accepted.
func (s *Store) Unknown() int { return int(s.unknown.Load()) }

// Fit reports whether the backend is used for new claims: it was found fit, and
// has not become unfit since.
func (s *Store) Fit() bool { return s.ready() && s.refusing.Load() == nil }

// ready reports whether the backend was ever found fit.
func (s *Store) ready() bool {
	select {
	case <-s.fit:
		return true
	default:
		return false
	}
}

// unready is the error of every call before the backend was found fit.
func unready(doing string) error {
	return fmt.Errorf("%s: %w: it has not been found fit yet", doing, lock.ErrUnavailable)
}
