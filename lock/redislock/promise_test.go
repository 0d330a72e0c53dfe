package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		directives []string
		want       string
	}{
		{nil, ""},
		{[]string{"maxmemory-policy allkeys-lru"}, "eviction"},
		{[]string{"maxmemory-policy volatile-ttl", "appendfsync everysec"}, "eviction fsync"},
		{[]string{"no-appendfsync-on-rewrite yes"}, "fsync"},
		{[]string{"appendonly no"}, "persistence"},
		{[]string{"appendonly no", "save 60 1"}, "persistence"},
	} {
		t.Run("B62 B63 "+strings.Join(c.directives, ", "), func(t *testing.T) {
			server := testenv.Redis(t, c.directives...)
			if got := locktest.Weaknesses(t, opened(t, redislock.Options{URL: server.URL})); got != c.want {
				t.Errorf("weak in %q, not %q", got, c.want)
			}
		})
	}
}

// B62: a server that may not evict and is full refuses, and breaks nothing.
func TestFull(t *testing.T) {
	server := testenv.Redis(t, "maxmemory 3mb")
	s := opened(t, redislock.Options{URL: server.URL})
	first := locktest.Begin("first")
	locktest.MustApply(t, s, first)
	for i := 0; ; i++ {
		c := locktest.Begin(fmt.Sprint(i))
		c.Next.Request = make([]byte, 100<<10)
		_, err := s.Apply(t.Context(), []lock.Change{c})
		if err != nil {
			if !errors.Is(err, lock.ErrUnavailable) {
				t.Fatal(err)
			}
			break
		}
		if i > 100 {
			t.Fatal("it is never full")
		}
	}
	got, err := s.Read(t.Context(), []lock.Key{first.Next.Key})
	if err != nil || got[0].Version != first.Next.Version {
		t.Fatal(got, err)
	}
	do(t, raw(t, server.Addr), "CONFIG", "SET", "maxmemory", "0")
	locktest.MustApply(t, s, locktest.Settle(first))
}

// B63: a claim is made on a primary whose replica hears nothing of it. The primary
// dies, and the replica takes its place: it knows of nothing, so another begins the
// event. That is said in docs/stores.md. What the first holder writes then is
// refused, and the second's record stands.
func TestFailoverForgets(t *testing.T) {
	primary := testenv.Redis(t, "repl-diskless-sync-delay 0")
	link := locktest.NewProxy(t, primary.Addr)
	host, port, err := net.SplitHostPort(link.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := testenv.Redis(t, "replicaof "+host+" "+port, "appendonly no")
	promoted := raw(t, replica.Addr)
	await(t, func() bool {
		info, err := promoted.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	link.Hold()
	first := locktest.Begin("e")
	locktest.MustApply(t, opened(t, redislock.Options{URL: primary.URL}), first)
	primary.Kill(t)
	do(t, promoted, "REPLICAOF", "NO", "ONE")
	s := opened(t, redislock.Options{URL: replica.URL})
	second := locktest.Begin("e")
	await(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results, err := s.Apply(ctx, []lock.Change{second})
		return err == nil && results[0].Applied(second)
	})
	results, err := s.Apply(t.Context(), []lock.Change{locktest.Settle(first)})
	if err != nil || results[0].Err != nil || results[0].Standing.Token != second.Next.Token {
		t.Fatalf("the first holder was told %+v, %v", results, err)
	}
	locktest.MustApply(t, s, locktest.Settle(second))
	do(t, promoted, "FLUSHALL")
	got, err := s.Read(t.Context(), []lock.Key{second.Next.Key})
	if err != nil || got[0].Exists() {
		t.Fatalf("after FLUSHALL: %+v, %v", got, err)
	}
}
