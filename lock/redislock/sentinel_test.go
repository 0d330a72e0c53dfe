package redislock_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

// B63: the primary of a Sentinel set dies. What its replica had is there, and
// the store goes on with the new primary by itself.
func TestSentinel(t *testing.T) {
	primary := testenv.Redis(t, "repl-diskless-sync-delay 0")
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Redis(t, "replicaof "+host+" "+port, "appendonly no")
	at := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	sentinel(t, at, host, port)
	url := "redis+sentinel://" + at + "/0?master_name=main"
	s, followed := opened(t, redislock.Options{URL: url}), opened(t, redislock.Options{URL: url, Replicas: 1})
	insist := func(s *redislock.Store, c lock.Change) {
		t.Helper()
		await(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			results, err := s.Apply(ctx, []lock.Change{c})
			return err == nil && results[0].Applied(c)
		})
	}
	e := locktest.Begin("e")
	insist(followed, e)
	insist(s, locktest.Begin("warm"))
	// The sentinel must know the replica that it is to promote.
	await(t, func() bool {
		n, err := raw(t, at).Do(t.Context(), "SENTINEL", "REPLICAS", "main").Slice()
		return err == nil && len(n) == 1
	})
	primary.Kill(t)
	insist(s, locktest.Settle(e))
	insist(s, locktest.Begin("after"))
}

// sentinel starts a Sentinel that watches one primary, under the name "main",
// and decides alone.
func sentinel(t *testing.T, at, host, port string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("redis-server is not installed: apt-get install redis-server: %v", err)
	}
	_, own, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	dir := testenv.Dir(t)
	file := dir + "/sentinel.conf"
	conf := "port " + own + "\nbind 127.0.0.1\ndir " + dir + "\nsentinel monitor main " + host + " " + port + " 1\n" +
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Own(file); err != nil {
		t.Fatal(err)
	}
	testenv.Run(t, testenv.Command{
		Name: "redis-sentinel", Path: path, Args: []string{file, "--sentinel"}, Dir: dir, Unprivileged: true,
		Ready: func() error {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
}
