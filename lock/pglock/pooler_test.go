package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// B55: the whole suite through PgBouncer in transaction mode, with few
// sessions for all stores. In mode auto the store finds out by itself that
// prepared statements don't last there.
func TestStoreBehindPgBouncer(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	b := testenv.PgBouncer(t, p, "default_pool_size = 5")
	suite(t, pglock.Options{URL: b.URL(database), Schema: "once"}, p, database)
}

// B55: two replicas keep on through a restart of PgBouncer. Each call is told
// to be without an outcome or has one, and every event ends done exactly once.
func TestPgBouncerRestart(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	b := testenv.PgBouncer(t, p, "default_pool_size = 5")
	const workers, events = 8, 60
	stores := []*pglock.Store{opened(t, pglock.Options{URL: b.URL(database)}), opened(t, pglock.Options{URL: b.URL(database)})}
	half := make(chan struct{}, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range events {
				if i == events/2 {
					half <- struct{}{}
				}
				e := locktest.Begin(fmt.Sprint(w, "-", i))
				insist(t, stores[w%2], e)
				insist(t, stores[(w+1)%2], locktest.Settle(e))
			}
		})
	}
	<-half
	b.Stop(t)
	b.Start(t)
	wg.Wait()
	counts, err := stores[0].Count(t.Context(), "shop")
	if err != nil || counts.Claims[lock.ScopeState{Scope: "stripe", State: lock.StateDone}] != workers*events {
		t.Fatalf("counts are %v; %v", counts, err)
	}
}

// insist sends a change until it is known to stand.
func insist(t *testing.T, s *pglock.Store, c lock.Change) {
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		results, err := s.Apply(ctx, []lock.Change{c})
		cancel()
		switch {
		case err == nil && results[0].Applied(c):
			return
		case err == nil:
			t.Errorf("refused over %v", results[0].Standing.State)
			return
		case !errors.Is(err, lock.ErrUnavailable) || time.Since(start) > 30*time.Second:
			t.Errorf("apply: %v", err)
			return
		}
	}
}

func TestWatch(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	a, b := opened(t, pglock.Options{URL: p.URL(database)}), opened(t, pglock.Options{URL: p.URL(database)})

	ctx, cancel := context.WithCancel(t.Context())
	rested, ended := make(chan lock.Digest, 1000), make(chan error, 2)
	for _, s := range []*pglock.Store{a, b} {
		go func() { ended <- s.Watch(ctx, func(d lock.Digest) { rested <- d }) }()
	}
	told := func() bool {
		e := locktest.Begin(fmt.Sprint(time.Now().UnixNano()))
		locktest.MustApply(t, a, e)
		locktest.MustApply(t, a, locktest.Settle(e))
		after := time.After(100 * time.Millisecond)
		for n := 0; n < 2; {
			select {
			case d := <-rested:
				if d == e.Next.Digest {
					n++
				}
			case <-after:
				return false
			}
		}
		return true
	}
	for start := time.Now(); !told(); {
		if time.Since(start) > 20*time.Second {
			t.Fatal("the two watches are told nothing")
		}
	}
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("watch ended with %v", err)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	b := testenv.PgBouncer(t, p)
	none := func(lock.Digest) {}
	for _, o := range []pglock.Options{
		{URL: b.URL(database)},
		{URL: b.URL(database), Mode: pglock.ModePrepare},
		{URL: p.URL(database), Mode: pglock.ModeExec},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := opened(t, o).Watch(ctx, none); err == nil || ctx.Err() != nil {
			t.Errorf("watch where nothing can come through: %v", err)
		}
		cancel()
	}
	t.Run("with the store", func(t *testing.T) {
		s := open(t, pglock.Options{URL: p.URL(database)})
		ended := make(chan error)
		go func() { ended <- s.Watch(t.Context(), none) }()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, lock.ErrUnavailable) {
			t.Error(err)
		}
	})
	t.Run("with its connection", func(t *testing.T) {
		s := opened(t, pglock.Options{URL: p.URL(database)})
		ended := make(chan error)
		go func() { ended <- s.Watch(t.Context(), none) }()
		for {
			p.Exec(t, database, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
			select {
			case err := <-ended:
				if !errors.Is(err, lock.ErrUnavailable) {
					t.Error(err)
				}
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}
