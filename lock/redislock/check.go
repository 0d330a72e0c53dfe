package redislock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

// Check implements lock.Checker. Its names are eviction, persistence, fsync and
// read_only. Of a cluster it asks every primary.
func (s *Store) Check(ctx context.Context) ([]lock.Weakness, error) {
	var mu sync.Mutex // guards found, to which a cluster's nodes add
	var found []lock.Weakness
	err := s.reading(ctx, "check", func() error {
		found = nil
		node := func(ctx context.Context, c *redis.Client) error {
			facts, err := factsOf(ctx, c)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, facts.weaknesses(c.Options().Addr)...)
			return nil
		}
		switch c := s.client.(type) {
		case *redis.ClusterClient:
			return c.ForEachMaster(ctx, node)
		case *redis.Client:
			return node(ctx, c)
		default:
			return errAnswer
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b lock.Weakness) int {
		return strings.Compare(a.Name+a.Detail, b.Name+b.Detail)
	})
	return found, nil
}

// facts are what a server says of itself; what it does not say is missing.
type facts map[string]string

// factsOf asks what INFO says, which hardly any host forbids, and then CONFIG,
// which many do.
func factsOf(ctx context.Context, c *redis.Client) (facts, error) {
	info, err := c.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	f := facts{}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if name, value, is := strings.Cut(lines.Text(), ":"); is {
			f[name] = value
		}
	}
	for _, name := range []string{"appendfsync", "no-appendfsync-on-rewrite", "save"} {
		values, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			if _, refused := errors.AsType[redis.Error](err); refused {
				continue
			}
			return nil, err
		}
		for name, value := range values {
			f[name] = value
		}
	}
	return f, nil
}

func (f facts) weaknesses(server string) (found []lock.Weakness) {
	say := func(name, detail string, unknown bool) {
		found = append(found, lock.Weakness{Name: name, Detail: server + ": " + detail, Unknown: unknown})
	}
	switch policy, known := f["maxmemory_policy"]; {
	case !known:
		say("eviction", "it does not tell its maxmemory-policy, which must be noeviction", true)
	case policy != "noeviction":
		say("eviction", fmt.Sprintf("maxmemory-policy is %s, so it drops claims when memory is short; set noeviction", policy), false)
	}
	switch f["aof_enabled"] {
	case "1":
		switch fsync, known := f["appendfsync"]; {
		case !known:
			say("fsync", "it does not tell its appendfsync, which must be always", true)
		case fsync != "always":
			say("fsync", fmt.Sprintf("appendfsync is %s, so the last changes are lost with the power; set always", fsync), false)
		case f["no-appendfsync-on-rewrite"] == "yes":
			say("fsync", "no-appendfsync-on-rewrite is yes, so changes made during a rewrite are lost with the power; set no", false)
		}
	case "0":
		detail := "it keeps nothing on disk, so a restart forgets all claims; set appendonly yes"
		if f["save"] != "" {
			detail = "it keeps snapshots alone, so a restart forgets the claims since the last; set appendonly yes"
		}
		say("persistence", detail, false)
	default:
		say("persistence", "it does not tell whether it keeps anything on disk; it must have appendonly yes", true)
	}
	if role := f["role"]; role != "" && role != "master" {
		say("read_only", "it is a replica, where nothing can be written; connect to the primary", false)
	}
	return found
}
