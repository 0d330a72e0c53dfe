package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

// following says how many replicas must have what is written: in memory, or also
// on their disks.
type following struct {
	replicas int
	onDisk   bool
}

// What is known of the server's WAITAOF, which Redis has had since 7.2.
const (
	notAsked int32 = iota
	hasNone
	hasWaitAOF
)

// following asks the server once whether it has WAITAOF. One that does not let
// itself be asked is taken to have none.
func (s *Store) following(ctx context.Context) (following, error) {
	f := following{replicas: s.options.Replicas}
	if f.replicas == 0 {
		return f, nil
	}
	known := s.waitAOF.Load()
	if known == notAsked {
		known = hasNone
		about, err := s.client.Do(ctx, "COMMAND", "INFO", "WAITAOF").Slice()
		if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
			return f, err
		}
		if len(about) == 1 && about[0] != nil {
			known = hasWaitAOF
		}
		s.waitAOF.Store(known)
	}
	f.onDisk = known == hasWaitAOF
	return f, nil
}

// command asks for up to limit until the replicas have followed.
func (f following) command(limit time.Duration) []any {
	if f.onDisk {
		return []any{"WAITAOF", 0, f.replicas, limit.Milliseconds()} // our own disk is seen to by Check
	}
	return []any{"WAIT", f.replicas, limit.Milliseconds()}
}

// followed judges what that was answered. A server that refuses WAITAOF may be an
// older one that has taken over, so it is asked anew the next time.
func (s *Store) followed(answer *redis.Cmd, f following) (err error) {
	n, where := int64(0), ""
	if f.onDisk {
		where = " on its disk"
		var both []int64
		if both, err = answer.Int64Slice(); err == nil && len(both) != 2 {
			err = errAnswer
		}
		if err == nil {
			n = both[1]
		}
		if _, refused := errors.AsType[redis.Error](err); refused {
			s.waitAOF.Store(notAsked)
		}
	} else {
		n, err = answer.Int64()
	}
	if err == nil && n < int64(f.replicas) {
		err = fmt.Errorf("%d of %d replicas have the change%s: %w", n, f.replicas, where, lock.ErrUnavailable)
	}
	return err
}

// byNode says which client is to send which runs. One client sends them all,
// and a cluster's finds the nodes by itself; but a question about replicas is
// only worth something on the connection that wrote, so that a cluster's nodes
// are then asked one by one.
func (s *Store) byNode(ctx context.Context, runs []run, f following) (map[redis.Cmdable][]run, error) {
	cluster, is := s.client.(*redis.ClusterClient)
	if !is || f.replicas == 0 {
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

// relearn has a cluster's client ask anew which node has which slots. It does so by
// itself where it chooses the node, and not for minutes where byNode does.
func (s *Store) relearn(ctx context.Context) {
	if cluster, is := s.client.(*redis.ClusterClient); is {
		cluster.ReloadState(ctx)
	}
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
