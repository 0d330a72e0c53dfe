package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

// insist sends a change until it is answered, as a Gate does. Each error must say
// that the store is out of reach or, as a replica does, unfit; and no answer that
// another's record stands.
func insist(t *testing.T, s *redislock.Store, c lock.Change) {
	t.Helper()
	await(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		results, err := s.Apply(ctx, []lock.Change{c})
		if err != nil && !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnfit) {
			t.Errorf("%s: %v", c.Next.Text, err)
		}
		if err == nil && !results[0].Applied(c) {
			t.Errorf("%s was told of another: %+v", c.Next.Text, results[0])
		}
		return err == nil || t.Failed()
	})
}

// inFlight has events begun and settled all the while something happens, and wants
// each of them to be done afterwards.
func inFlight(t *testing.T, s *redislock.Store, name string, happens func()) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards keys
	var keys []lock.Key
	over := make(chan struct{})
	for worker := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				c := locktest.Begin(fmt.Sprintf("%s %d %d", name, worker, i))
				insist(t, s, c)
				insist(t, s, locktest.Settle(c))
				mu.Lock()
				keys = append(keys, c.Next.Key)
				mu.Unlock()
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(keys)
	}
	await(t, func() bool { return count() > 100 })
	happens()
	n := count()
	await(t, func() bool { return count() > n+100 })
	close(over)
	wg.Wait()
	got, err := s.Read(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	forgotten := 0
	for _, r := range got {
		if r.State != lock.StateDone {
			forgotten++
		}
	}
	if forgotten > 0 {
		t.Errorf("%d of %d events are forgotten", forgotten, len(keys))
	}
}

func primary(t *testing.T, server *testenv.RedisServer) bool {
	t.Helper()
	info, err := raw(t, server.Addr).Info(t.Context(), "replication").Result()
	return err == nil && strings.Contains(info, "role:master")
}

// B63: nodes of a cluster change their parts and die while events are claimed. As a
// change counts once a replica has it, none is forgotten.
func TestClusterFailover(t *testing.T) {
	primaries, replicas := cluster(t)
	url := "redis+cluster://" + primaries[1].Addr + "?addr=" + primaries[2].Addr
	s := opened(t, redislock.Options{URL: url, Replicas: 1})
	t.Run("B63 MOVED: a replica takes over, and is asked to", func(t *testing.T) {
		var since time.Time
		inFlight(t, s, "moved", func() {
			do(t, raw(t, replicas[0].Addr), "CLUSTER", "FAILOVER")
			await(t, func() bool { return primary(t, replicas[0]) })
			since = time.Now()
		})
		// The client library looks for itself once a minute.
		if took := time.Since(since); took > 40*time.Second {
			t.Errorf("it took %v to find the new primary", took)
		}
	})
	t.Run("B63 CLUSTERDOWN: a primary dies", func(t *testing.T) {
		replicaOfReplica := raw(t, replicas[0].Addr)
		await(t, func() bool { // has the old primary as its replica
			info, err := replicaOfReplica.Info(t.Context(), "replication").Result()
			return err == nil && strings.Contains(info, "connected_slaves:1")
		})
		inFlight(t, s, "down", func() {
			replicas[0].Kill(t)
			await(t, func() bool { return primary(t, primaries[0]) })
			// It has no replica now, so that nothing of its slots would count.
			replicas[0].Start(t)
		})
	})
}

// B63: a slot is on its way from one node to another. What is asked of it is sent on
// (ASK), or refused for the moment (TRYAGAIN), and never answered wrongly.
func TestSlotMigration(t *testing.T) {
	nodes, _ := cluster(t)
	url := "redis+cluster://" + nodes[0].Addr
	s := opened(t, redislock.Options{URL: url})
	old, e := locktest.Begin("old"), locktest.Begin("new")
	for n := 0; e.Next.Digest[0] != old.Next.Digest[0]; n++ { // of one slot
		e = locktest.Begin(strconv.Itoa(n))
	}
	locktest.MustApply(t, s, old)
	tag := fmt.Sprintf("oncegate:{%02x}:shop", old.Next.Digest[0])
	slot, err := raw(t, nodes[0].Addr).ClusterKeySlot(t.Context(), tag).Result()
	if err != nil {
		t.Fatal(err)
	}
	from := int(slot) * 3 / 16384
	source, target := raw(t, nodes[from].Addr), raw(t, nodes[(from+1)%3].Addr)
	id := func(c *redis.Client) string {
		name, err := c.ClusterMyID(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	do(t, target, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(source))
	do(t, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(target))
	host, port, _ := strings.Cut(target.Options().Addr, ":")
	migrate := func() bool {
		keys, err := source.ClusterGetKeysInSlot(t.Context(), int(slot), 1).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) > 0 {
			do(t, source, "MIGRATE", host, port, keys[0], 0, 5000)
		}
		return len(keys) > 0
	}
	for moved, more := 0, true; more; moved++ {
		// With some of its keys here and some there.
		results, err := s.Apply(t.Context(), []lock.Change{e})
		if err != nil && !errors.Is(err, lock.ErrUnavailable) || err == nil && !results[0].Applied(e) {
			t.Errorf("with %d keys moved: %+v, %v", moved, results, err)
		}
		got, err := s.Read(t.Context(), []lock.Key{old.Next.Key})
		if err != nil && !errors.Is(err, lock.ErrUnavailable) || err == nil && got[0].Version != old.Next.Version {
			t.Errorf("with %d keys moved, read %+v, %v", moved, got, err)
		}
		more = migrate()
	}
	for _, c := range []*redis.Client{target, source} {
		do(t, c, "CLUSTER", "SETSLOT", slot, "NODE", id(target))
	}
	insist(t, s, e)
	insist(t, s, locktest.Settle(old))
}

// A server that can't save what it keeps lets nothing be written, and is written to
// again when it can.
func TestMisconf(t *testing.T) {
	server := testenv.Redis(t, "appendonly no", "save 3600 1000000")
	admin := raw(t, server.Addr)
	s := opened(t, redislock.Options{URL: server.URL})
	e := locktest.Begin("e")
	locktest.MustApply(t, s, e)
	save := func(works bool) {
		t.Helper()
		if err := admin.Do(t.Context(), "BGSAVE").Err(); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool {
			info, err := admin.Info(t.Context(), "persistence").Result()
			return err == nil && strings.Contains(info, "rdb_bgsave_in_progress:0") &&
				strings.Contains(info, "rdb_last_bgsave_status:ok") == works
		})
	}
	mode(t, server.Dir, 0o500)
	save(false)
	if _, err := s.Apply(t.Context(), []lock.Change{locktest.Settle(e)}); !errors.Is(err, lock.ErrUnfit) {
		t.Errorf("where it can't save: %v", err)
	}
	got, err := s.Read(t.Context(), []lock.Key{e.Next.Key})
	if err != nil || got[0].Version != e.Next.Version {
		t.Errorf("read %+v, %v", got, err)
	}
	mode(t, server.Dir, 0o700)
	save(true)
	locktest.MustApply(t, s, locktest.Settle(e))
}

// B63: a server that starts again, and reads what it kept, is out of reach until it
// has: what is there is never taken for absent.
func TestLoading(t *testing.T) {
	server := testenv.Redis(t, "key-load-delay 20000", "loading-process-events-interval-bytes 1024")
	s := opened(t, redislock.Options{URL: server.URL})
	events := make([]lock.Change, 100)
	for i := range events {
		events[i] = locktest.Settle(locktest.Begin(strconv.Itoa(i)))
		events[i].Expect = lock.None
	}
	locktest.MustApply(t, s, events...)
	admin := raw(t, server.Addr)
	do(t, admin, "BGREWRITEAOF") // what is rewritten is read slowly, as asked for above
	await(t, func() bool {
		info, err := admin.Info(t.Context(), "persistence").Result()
		return err == nil && strings.Contains(info, "aof_rewrite_in_progress:0")
	})
	server.Kill(t)
	started := make(chan struct{})
	go func() {
		defer close(started)
		server.Start(t)
	}()
	loading := 0
	await(t, func() bool {
		got, err := s.Read(t.Context(), []lock.Key{events[len(events)-1].Next.Key})
		switch {
		case err == nil && got[0].State != lock.StateDone:
			t.Fatalf("read %+v", got[0])
		case err != nil && !errors.Is(err, lock.ErrUnavailable):
			t.Fatal(err)
		case err != nil && strings.Contains(err.Error(), "LOADING"):
			loading++
		}
		return err == nil
	})
	<-started
	if loading == 0 {
		t.Error("it was never seen loading")
	}
	for _, e := range events {
		insist(t, s, e)
	}
}
