package redislock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

// cluster starts three primaries that share the slots, each with a replica.
func cluster(t *testing.T) (primaries, replicas []*testenv.RedisServer) {
	t.Helper()
	const slots, n = 16384, 3
	bus := map[*redis.Client]int{} // the ports on which nodes speak with each other
	node := func(servers *[]*testenv.RedisServer, clients *[]*redis.Client) {
		port := testenv.Port(t)
		server := testenv.Redis(t, "cluster-enabled yes", "cluster-node-timeout 5000", "appendonly no",
			"repl-diskless-sync-delay 0", fmt.Sprint("cluster-port ", port))
		c := raw(t, server.Addr)
		bus[c] = port
		*servers, *clients = append(*servers, server), append(*clients, c)
	}
	var clients, followers []*redis.Client
	for i := range n {
		node(&primaries, &clients)
		do(t, clients[i], "CLUSTER", "ADDSLOTSRANGE", i*slots/n, (i+1)*slots/n-1)
		do(t, clients[i], "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for range n {
		node(&replicas, &followers)
	}
	for _, c := range append(clients[1:], followers...) {
		host, port, _ := strings.Cut(c.Options().Addr, ":")
		do(t, clients[0], "CLUSTER", "MEET", host, port, bus[c])
	}
	await(t, func() bool {
		for i := range n {
			id, err := clients[i].ClusterMyID(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			// Refused until the replica has heard of its primary.
			if followers[i].ClusterReplicate(t.Context(), id).Err() != nil {
				return false
			}
		}
		return true
	})
	await(t, func() bool {
		for _, c := range append(clients, followers...) {
			info, err := c.ClusterInfo(t.Context()).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:6") {
				return false
			}
		}
		for _, c := range followers {
			if info, err := c.Info(t.Context(), "replication").Result(); err != nil || !strings.Contains(info, "master_link_status:up") {
				return false
			}
		}
		return true
	})
	return primaries, replicas
}

func await(t *testing.T, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > 60*time.Second {
			t.Fatal("waited for nothing")
		}
	}
}

func TestCluster(t *testing.T) {
	nodes, _ := cluster(t)
	url := "redis+cluster://" + nodes[0].Addr + "?addr=" + nodes[1].Addr
	n := 0
	t.Run("suite", func(t *testing.T) {
		locktest.Run(t, func(t testing.TB) locktest.Fixture {
			n++
			prefix := fmt.Sprint("case", n, ":")
			return locktest.Fixture{
				Open: func(t testing.TB) locktest.Store { return open(t, redislock.Options{URL: url, Prefix: prefix}) },
				Pass: func(t testing.TB, d time.Duration) {
					for _, node := range nodes {
						pass(t, raw(t, node.Addr), prefix, d)
					}
				},
				Stored: func(t testing.TB) (sum int) {
					for _, node := range nodes {
						sum += len(records(t, raw(t, node.Addr), prefix))
					}
					return sum
				},
			}
		})
	})
	t.Run("replicas follow, on every node", func(t *testing.T) {
		s := opened(t, redislock.Options{URL: url, Prefix: "replicas:", Replicas: 1})
		var batch []lock.Change
		for i := range 20 {
			batch = append(batch, locktest.Begin(fmt.Sprint(i)))
		}
		locktest.MustApply(t, s, batch...)
	})
	t.Run("every primary is checked", func(t *testing.T) {
		s := opened(t, redislock.Options{URL: url})
		if got := locktest.Weaknesses(t, s); got != "persistence persistence persistence" {
			t.Errorf("weak in %q", got)
		}
	})
}
