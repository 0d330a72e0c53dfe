package redislock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

// B63, B64: a change that no replica has is sent again, on the same connection and on
// others. It stands already, so that nothing is written; and it still does not count.
func TestReplicasSentAgain(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *testenv.RedisServer{
		"WAIT":    testenv.Redis,
		"WAITAOF": testenv.Valkey,
	} {
		t.Run(name, func(t *testing.T) {
			primary := start(t, "repl-diskless-sync-delay 0")
			host, port, err := net.SplitHostPort(primary.Addr)
			if err != nil {
				t.Fatal(err)
			}
			replica := start(t, "replicaof "+host+" "+port)
			s := opened(t, redislock.Options{URL: primary.URL, Replicas: 1})
			apply := func(s *redislock.Store, c lock.Change) error {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := s.Apply(ctx, []lock.Change{c})
				return err
			}
			await(t, func() bool { return apply(s, locktest.Begin("first")) == nil })
			replica.Pause(t)
			e := locktest.Begin("e")
			for _, where := range []string{"", ", again", ", on another connection"} {
				through := s
				if where == ", on another connection" {
					through = opened(t, redislock.Options{URL: primary.URL, Replicas: 1})
				}
				if err := apply(through, e); !errors.Is(err, lock.ErrUnavailable) {
					t.Errorf("sent%s: %v", where, err)
				}
			}
			replica.Resume(t)
			await(t, func() bool { return apply(s, e) == nil })
			replica.Kill(t)
		})
	}
}
