package redislock_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"oncegate/internal/testenv"
	"oncegate/lock/redislock"
)

// B63: the primary of a Sentinel set dies while events are claimed, and comes back as
// the replica of the one that took its place. The store goes on by itself, and as a
// change counts once a replica has it, nothing is forgotten.
func TestSentinel(t *testing.T) {
	first := testenv.Redis(t, "repl-diskless-sync-delay 0")
	host, port, err := net.SplitHostPort(first.Addr)
	if err != nil {
		t.Fatal(err)
	}
	second := testenv.Redis(t, "replicaof "+host+" "+port, "repl-diskless-sync-delay 0")
	at := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	sentinel(t, at, host, port)
	url := "redis+sentinel://" + at + "/0?master_name=main"
	s := opened(t, redislock.Options{URL: url, Replicas: 1})
	// The sentinel must know the replica that it is to promote.
	await(t, func() bool {
		n, err := raw(t, at).Do(t.Context(), "SENTINEL", "REPLICAS", "main").Slice()
		return err == nil && len(n) == 1
	})
	inFlight(t, s, "failover", func() {
		first.Kill(t)
		await(t, func() bool { return primary(t, second) })
		first.Start(t) // until then there is no replica, and nothing counts
	})
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
