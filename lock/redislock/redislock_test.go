package redislock_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

func TestStore(t *testing.T) { locktest.Run(t, fixtures(servers.Redis(t))) }

// fixtures are empty places on a server.
func fixtures(server *testenv.RedisServer) func(testing.TB) locktest.Fixture {
	n := 0
	return func(testing.TB) locktest.Fixture {
		n++
		prefix := fmt.Sprintf("case[%d]*:", n)
		return locktest.Fixture{
			Open:   func(t testing.TB) locktest.Store { return open(t, redislock.Options{URL: server.URL, Prefix: prefix}) },
			Pass:   func(t testing.TB, d time.Duration) { pass(t, raw(t, server.Addr), prefix, d) },
			Stored: func(t testing.TB) int { return len(records(t, raw(t, server.Addr), prefix)) },
		}
	}
}

func open(t testing.TB, o redislock.Options) *redislock.Store {
	t.Helper()
	s, err := redislock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func opened(t *testing.T, o redislock.Options) *redislock.Store {
	t.Helper()
	s := open(t, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw is a client apart from the store.
func raw(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// records returns the keys of the records with a prefix.
func records(t testing.TB, c *redis.Client, prefix string) (keys []string) {
	t.Helper()
	all, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if rest, ours := strings.CutPrefix(k, prefix); ours && strings.Count(rest, ":") == 3 {
			keys = append(keys, k)
		}
	}
	return keys
}

// pass moves the moments in each record, and its TTL, into the past.
func pass(t testing.TB, c *redis.Client, prefix string, d time.Duration) {
	t.Helper()
	const script = `
		local v, ttl = redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
		local moments = {struct.unpack('<ddddddd', v, 19)}
		for i = 1, 7 do
			if moments[i] ~= 0 then moments[i] = moments[i] - ARGV[1] end
		end
		redis.call('SET', KEYS[1], string.sub(v, 1, 18) .. struct.pack('<ddddddd', unpack(moments, 1, 7)) .. string.sub(v, 75))
		if ttl > 0 then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl - ARGV[1] / 1000)) end`
	for _, k := range records(t, c, prefix) {
		if err := c.Eval(t.Context(), script, []string{k}, d.Microseconds()).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
}
