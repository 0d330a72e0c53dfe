package openstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
)

// A backend answers Check as a test says, and counts what reaches it.
type backend struct {
	mu    sync.Mutex
	check func(ctx context.Context) ([]lock.Weakness, error)
	reads int
	wrote []lock.Change
	err   error // of calls
	shut  bool
}

func (b *backend) Check(ctx context.Context) ([]lock.Weakness, error) {
	b.mu.Lock()
	check := b.check
	b.mu.Unlock()
	return check(ctx)
}

func (b *backend) become(check func(context.Context) ([]lock.Weakness, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.check = check
}

func (b *backend) Read(context.Context, []lock.Key) ([]lock.Record, error) {
	b.reads++
	return nil, b.err
}

func (b *backend) Close() error { b.shut = true; return nil }

func (b *backend) Apply(_ context.Context, batch []lock.Change) ([]lock.Result, error) {
	b.wrote = append(b.wrote, batch...)
	results := make([]lock.Result, len(batch))
	for i := range batch {
		results[i].Standing = batch[i].Next
	}
	return results, b.err
}
func (b *backend) List(context.Context, lock.Filter, lock.Cursor, int) ([]lock.Record, error) {
	return nil, b.err
}
func (b *backend) Count(context.Context, string) (lock.Counts, error) { return lock.Counts{}, b.err }
func (b *backend) Purge(context.Context, string, int) (lock.Purged, error) {
	return lock.Purged{}, b.err
}

func fit(context.Context) ([]lock.Weakness, error) { return nil, nil }

func out(context.Context) ([]lock.Weakness, error) {
	return nil, fmt.Errorf("dial: %w", lock.ErrUnavailable)
}

func hangs(ctx context.Context) ([]lock.Weakness, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", lock.ErrUnavailable, ctx.Err())
}

func weak(names ...string) func(context.Context) ([]lock.Weakness, error) {
	return func(context.Context) (found []lock.Weakness, err error) {
		for _, name := range names {
			found = append(found, lock.Weakness{Name: name, Detail: "change " + name})
		}
		return found, nil
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestOpen(t *testing.T) {
	unfit := fmt.Errorf("no table: %w", lock.ErrUnfit)
	for _, c := range []struct {
		name   string
		check  func(context.Context) ([]lock.Weakness, error)
		accept []string
		err    error
		fit    bool
		state  State
	}{
		{name: "fit", check: fit, fit: true, state: Reachable},
		{name: "out of reach is no error", check: out, state: Unreachable},
		{name: "no answer is no error", check: hangs, state: Unreachable},
		{name: "unfit", check: func(context.Context) ([]lock.Weakness, error) { return nil, unfit }, err: unfit},
		{name: "weak", check: weak("eviction"), err: lock.ErrUnfit},
		{name: "accepted by name", check: weak("eviction"), accept: []string{"eviction"}, fit: true, state: Reachable},
		{name: "one of two accepted", check: weak("eviction", "fsync"), accept: []string{"eviction"}, err: lock.ErrUnfit},
		{name: "could not be asked", fit: true, state: Reachable, check: func(context.Context) ([]lock.Weakness, error) {
			return []lock.Weakness{{Name: "fsync", Unknown: true}}, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backend{check: c.check}
				s, err := Open(t.Context(), b, Options{Accept: c.accept, Log: quiet()})
				if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				if err != nil {
					return
				}
				if s.Fit() != c.fit || s.State() != c.state {
					t.Errorf("fit %v, state %v", s.Fit(), s.State())
				}
				_, err = s.Read(t.Context(), nil)
				if c.fit != (err == nil) || !c.fit && !errors.Is(err, lock.ErrUnavailable) || (b.reads == 1) != c.fit {
					t.Errorf("read: %v, the backend was asked %d times", err, b.reads)
				}
				if err := s.Close(); err != nil || !b.shut {
					t.Errorf("close: %v, backend closed: %v", err, b.shut)
				}
			})
		})
	}
}

func TestWeakErrorSaysWhatToDo(t *testing.T) {
	_, err := Open(t.Context(), &backend{check: weak("eviction", "fsync")}, Options{Log: quiet()})
	want := "the store would not keep what it promises; " +
		"eviction: change eviction (or accept it: store.accept_weak: [eviction]); " +
		"fsync: change fsync (or accept it: store.accept_weak: [fsync])"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A store that comes late is used from when it was found fit, and not before.
func TestComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{check: out}
		s, err := Open(t.Context(), b, Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		watched := make(chan error, 1)
		watching, stop := context.WithCancel(t.Context())
		go func() { watched <- s.Watch(watching, func(lock.Digest) {}) }()

		time.Sleep(time.Minute)
		if s.Fit() || s.State() != Unreachable {
			t.Error("used while it is out")
		}
		b.become(weak("eviction"))
		time.Sleep(time.Minute)
		if s.Fit() {
			t.Error("used while it is unfit")
		}
		b.become(fit)
		time.Sleep(mostPause)
		synctest.Wait()
		if _, err := s.Read(t.Context(), nil); err != nil || s.State() != Reachable {
			t.Errorf("not used: %v, state %v", err, s.State())
		}
		stop()
		if err := <-watched; !errors.Is(err, context.Canceled) {
			t.Errorf("watch: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Making tables may take longer than a delivery can wait for the store.
func TestSlowExaminationIsLetFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) ([]lock.Weakness, error) {
			select {
			case <-time.After(20 * time.Second):
				return nil, nil
			case <-ctx.Done():
				return nil, fmt.Errorf("%w: %w", lock.ErrUnavailable, ctx.Err())
			}
		}
		began := time.Now()
		s, err := Open(t.Context(), &backend{check: slow}, Options{Timeout: 2 * time.Second, Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*time.Second || s.Fit() {
			t.Errorf("the start waited %v, fit %v", took, s.Fit())
		}
		time.Sleep(firstPause + 20*time.Second)
		synctest.Wait()
		if !s.Fit() {
			t.Error("never found fit")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// B62: a setting is changed while oncegate runs. Within ten minutes nothing new is
// claimed; what was begun is settled; and when it is put right all goes on.
func TestBecomesUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{check: fit}
		s, err := Open(t.Context(), b, Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		begin := lock.Change{Seen: true, Next: lock.Record{Version: lock.NewVersion(), State: lock.StateRunning}}
		renew := lock.Change{Expect: begin.Next.Version, Next: lock.Record{Version: lock.NewVersion(), State: lock.StateRunning}}
		applied := func() (bool, bool) {
			t.Helper()
			b.wrote = nil
			results, err := s.Apply(t.Context(), []lock.Change{begin, renew})
			if err != nil {
				t.Fatal(err)
			}
			if refused := results[0].Err; refused != nil && !errors.Is(refused, lock.ErrUnfit) {
				t.Errorf("refused with %v", refused)
			}
			return results[0].Applied(begin), results[1].Applied(renew)
		}
		changesTo := func(check func(context.Context) ([]lock.Weakness, error), wait time.Duration, wantFit bool) {
			t.Helper()
			b.become(check)
			time.Sleep(wait)
			synctest.Wait()
			one, two := applied()
			if s.Fit() != wantFit || one != wantFit || !two || len(b.wrote) == 2 != wantFit {
				t.Errorf("fit %v; begun %v, renewed %v", s.Fit(), one, two)
			}
			if _, err := s.Read(t.Context(), nil); err != nil {
				t.Errorf("read: %v", err)
			}
		}
		changesTo(fit, lookEvery, true)
		changesTo(weak("eviction"), lookEvery, false)
		changesTo(out, lookAgain, false) // nobody says that it was put right
		changesTo(fit, lookAgain, true)
		changesTo(out, lookEvery, true)
		changesTo(weak("eviction"), lookAgain, false) // another server came
		if _, err := s.Apply(t.Context(), []lock.Change{begin}); err != nil || len(b.wrote) != 1 {
			t.Errorf("a begin alone: %v, %d written", err, len(b.wrote))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What can't be asked is said once, until it changes, and counted all the time.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		asked := func(names ...string) func(context.Context) ([]lock.Weakness, error) {
			return func(context.Context) (found []lock.Weakness, err error) {
				for _, name := range names {
					found = append(found, lock.Weakness{Name: name, Unknown: true})
				}
				return found, nil
			}
		}
		b := &backend{check: asked("fsync", "eviction")}
		s, err := Open(t.Context(), b, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Accept: []string{"eviction"}})
		if err != nil {
			t.Fatal(err)
		}
		said := func(unknown, lines int) {
			t.Helper()
			time.Sleep(3 * lookEvery)
			synctest.Wait()
			if n := strings.Count(log.String(), "could not be asked"); s.Unknown() != unknown || n != lines {
				t.Errorf("%d unknown, said %d times", s.Unknown(), n)
			}
		}
		said(1, 1)
		b.become(asked("fsync", "persistence"))
		said(2, 3)
		b.become(fit)
		said(0, 3)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), &backend{check: hangs}, Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(firstPause + time.Second) // an examination is under way
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}) // fails if a goroutine is left
}

func TestStateFollowsCalls(t *testing.T) {
	b := &backend{check: fit}
	s, err := Open(t.Context(), b, Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		err  error
		want State
	}{
		{lock.ErrUnavailable, Unreachable},
		{context.Canceled, Unreachable}, // a caller that went away says nothing
		{nil, Reachable},
		{context.Canceled, Reachable},
	} {
		b.err = c.err
		if _, err := s.Read(t.Context(), nil); !errors.Is(err, c.err) || s.State() != c.want {
			t.Errorf("%v: error %v, state %v", c.err, err, s.State())
		}
	}
}
