package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

// byNode says which client is to send which runs. One client sends them all,
// and a cluster's finds the nodes by itself; but a question about replicas is
// only worth something on the connection that wrote, so that a cluster's nodes
// are then asked one by one.
func (s *Store) byNode(ctx context.Context, runs []run, replicas int) (map[redis.Cmdable][]run, error) {
	cluster, is := s.client.(*redis.ClusterClient)
	if !is || replicas == 0 {
		return map[redis.Cmdable][]run{s.client: runs}, nil
	}
	groups := map[redis.Cmdable][]run{}
	for _, r := range runs {
		node, err := cluster.MasterForKey(ctx, r.keys[0])
		if err != nil {
			return nil, err
		}
		groups[node] = append(groups[node], r)
	}
	return groups, nil
}

// waitTime is how long replicas may take: as long as the call may, but for what
// it takes to say so.
func waitTime(ctx context.Context) time.Duration {
	deadline, set := ctx.Deadline()
	if !set {
		return answerTime / 2
	}
	return max(time.Until(deadline)*9/10, time.Millisecond) // 0 would be for ever
}

func notFollowed(n int64, replicas int) error {
	return fmt.Errorf("%d of %d replicas have the change: %w", n, replicas, lock.ErrUnavailable)
}
