package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

func do(t *testing.T, c *redis.Client, command ...any) {
	t.Helper()
	if err := c.Do(t.Context(), command...).Err(); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
}

func TestLostReplies(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		p := locktest.NewProxy(t, servers.Redis(t).Addr)
		locktest.LostReplies(t, opened(t, redislock.Options{URL: "redis://" + p.Addr, Prefix: "lost:"}), p)
	})
	t.Run("a cluster", func(t *testing.T) {
		node := testenv.Redis(t, "cluster-enabled yes", fmt.Sprint("cluster-port ", testenv.Port(t)))
		p := locktest.NewProxy(t, node.Addr)
		_, port, _ := strings.Cut(p.Addr, ":")
		admin := raw(t, node.Addr)
		do(t, admin, "CONFIG", "SET", "cluster-announce-ip", "127.0.0.1", "cluster-announce-port", port)
		do(t, admin, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
		await(t, func() bool { return strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok") })
		locktest.LostReplies(t, opened(t, redislock.Options{URL: "redis+cluster://" + p.Addr}), p)
	})
	t.Run("a Sentinel set", func(t *testing.T) {
		p := locktest.NewProxy(t, testenv.Redis(t).Addr)
		host, port, _ := strings.Cut(p.Addr, ":")
		at := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
		sentinel(t, at, host, port)
		locktest.LostReplies(t, opened(t, redislock.Options{URL: "redis+sentinel://" + at + "/0?master_name=main"}), p)
	})
}

func TestReadsDoNotStarveWrites(t *testing.T) {
	p := locktest.NewProxy(t, servers.Redis(t).Addr)
	locktest.ReadsDoNotStarveWrites(t, opened(t, redislock.Options{URL: "redis://" + p.Addr, Prefix: "starve:", Pool: 8}), p, 6)
}

// A server that has forgotten the scripts is told them again.
func TestNoScript(t *testing.T) {
	server := testenv.Redis(t)
	s := opened(t, redislock.Options{URL: server.URL})
	a, b := locktest.Begin("a"), locktest.Begin("b")
	locktest.MustApply(t, s, a)
	do(t, raw(t, server.Addr), "SCRIPT", "FLUSH")
	locktest.MustApply(t, s, locktest.Settle(a), b)
	do(t, raw(t, server.Addr), "SCRIPT", "FLUSH")
	got, err := s.Read(t.Context(), []lock.Key{a.Next.Key, b.Next.Key})
	if err != nil || got[0].State != lock.StateDone || got[1].State != lock.StateRunning {
		t.Fatal(got, err)
	}
}

// The server is away when the store is opened, comes, goes and comes again.
// B63: what it was told is on its disk.
func TestOutage(t *testing.T) {
	server := testenv.Redis(t)
	server.Stop(t)
	locktest.Outage(t, opened(t, redislock.Options{URL: server.URL}), server)
}

// B56: the primary was made a replica while connections to it were open.
func TestReadOnly(t *testing.T) {
	server, other := testenv.Redis(t), testenv.Redis(t)
	s := opened(t, redislock.Options{URL: server.URL})
	locktest.MustApply(t, s, locktest.Begin("a"))
	host, port, err := net.SplitHostPort(other.Addr)
	if err != nil {
		t.Fatal(err)
	}
	do(t, raw(t, server.Addr), "REPLICAOF", host, port)
	if _, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("b")}); !errors.Is(err, lock.ErrUnfit) {
		t.Fatal(err)
	}
	do(t, raw(t, server.Addr), "REPLICAOF", "NO", "ONE")
	locktest.MustApply(t, s, locktest.Begin("b"))
}

// Replicas that must have a change, and don't.
func TestReplicas(t *testing.T) {
	primary := testenv.Redis(t, "repl-diskless-sync-delay 0")
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := testenv.Redis(t, "replicaof "+host+" "+port, "appendonly no")
	enough := opened(t, redislock.Options{URL: primary.URL, Replicas: 1})
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := enough.Apply(ctx, []lock.Change{locktest.Begin("first")})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, lock.ErrUnavailable) || time.Since(start) > 30*time.Second {
			t.Fatal(err)
		}
	}
	e := locktest.Begin("e")
	locktest.MustApply(t, enough, e)
	if n, err := raw(t, replica.Addr).DBSize(t.Context()).Result(); err != nil || n < 2 {
		t.Errorf("the replica has %d keys; %v", n, err)
	}
	replica.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := enough.Apply(ctx, []lock.Change{locktest.Settle(e)}); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("with no replica that follows: %v", err)
	}
	replica.Resume(t)
}

func TestPassword(t *testing.T) {
	server := testenv.Redis(t)
	admin := raw(t, server.Addr)
	do(t, admin, "ACL", "SETUSER", "shop", "on", "~*", "+@all", "-config", ">p@ss/1")
	password := "p@ss/1"
	s := opened(t, redislock.Options{
		URL:      "redis://shop@" + server.Addr,
		Password: func(context.Context) (string, error) { return password, nil },
	})
	locktest.MustApply(t, s, locktest.Begin("a"))
	do(t, admin, "ACL", "SETUSER", "shop", "<p@ss/1", ">zwei")
	do(t, admin, "CLIENT", "KILL", "USER", "shop")
	_, err := s.Apply(t.Context(), []lock.Change{locktest.Begin("b")})
	if !errors.Is(err, lock.ErrUnavailable) || strings.Contains(err.Error(), "p@ss") {
		t.Fatalf("with the old password: %v", err)
	}
	password = "zwei"
	locktest.MustApply(t, s, locktest.Begin("b"))
	// B62: this user may not ask for settings.
	if got := locktest.Weaknesses(t, s); got != "fsync?" {
		t.Errorf("a server that does not tell is weak in %q", got)
	}
}

// What others keep in the same database, and what is no record of ours.
func TestForeignKeys(t *testing.T) {
	server := testenv.Redis(t)
	admin := raw(t, server.Addr)
	do(t, admin, "SET", "oncegate:{00}:shop:stripe:not-a-digest", "x")
	do(t, admin, "SET", "somebody:else", "x")
	s := opened(t, redislock.Options{URL: server.URL})
	e := locktest.Begin("e")
	locktest.MustApply(t, s, e)
	got, err := s.List(t.Context(), lock.Filter{Namespace: "shop"}, lock.Cursor{}, 10)
	if err != nil || len(got) != 1 {
		t.Errorf("listed %d, %v", len(got), err)
	}
	for _, k := range admin.Keys(t.Context(), "oncegate:{*}:shop:stripe:*").Val() {
		do(t, admin, "SET", k, "nonsense")
	}
	if _, err := s.Read(t.Context(), []lock.Key{e.Next.Key}); !errors.Is(err, lock.ErrUnfit) {
		t.Errorf("read of what is no record: %v", err)
	}
	if _, err := s.Apply(t.Context(), []lock.Change{locktest.Settle(e)}); !errors.Is(err, lock.ErrUnfit) {
		t.Errorf("change of what is no record: %v", err)
	}
}

// TestScatteredExpiry: what was settled in one rush is not removed in one, nor
// before its time.
func TestScatteredExpiry(t *testing.T) {
	server := testenv.Redis(t)
	s := opened(t, redislock.Options{URL: server.URL, Prefix: "scattered:"})
	var begins, settles []lock.Change
	for i := range 64 {
		begins = append(begins, locktest.Begin(fmt.Sprint("evt_", i)))
		settles = append(settles, locktest.Settle(begins[i]))
	}
	locktest.MustApply(t, s, begins...)
	locktest.MustApply(t, s, settles...)
	c, retention := raw(t, server.Addr), settles[0].Next.Retain
	minutes := map[time.Duration]bool{}
	for _, k := range records(t, c, "scattered:") {
		ttl, err := c.PTTL(t.Context(), k).Result()
		if err != nil || ttl < retention-time.Minute || ttl > retention+retention/64+time.Second {
			t.Fatalf("expires in %v, retention %v, %v", ttl, retention, err)
		}
		minutes[ttl/(retention/64/8)] = true
	}
	if len(minutes) < 6 {
		t.Errorf("in %d eighths of the time", len(minutes))
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []redislock.Options{
		{URL: "redis://user:s3cr%t@host"},
		{URL: "redis://user:s3cret@host/db"},
		{URL: "redis+ring://user:s3cret@host"},
		{URL: "redis+sentinel://user:s3cret@host"},
		{URL: "mysql://user:s3cret@host/db"},
		{URL: "redis://user:s3cret@host", Pool: 1},
	} {
		_, err := redislock.Open(o)
		if err == nil || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// mode lets a server write to its folder, or not.
func mode(t *testing.T, dir string, m os.FileMode) {
	t.Helper()
	if err := os.Chmod(dir, m); err != nil {
		t.Fatal(err)
	}
}
