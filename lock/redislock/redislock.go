// Package redislock is the store in Redis: one server, a Sentinel set, or a
// Cluster.
//
//	s, err := redislock.Open(redislock.Options{URL: "redis://cache:6379/0"})
//	if err != nil { ... } // the URL can't be read
//	defer s.Close()
//
// # What it promises
//
// All of lock.Store, as long as the server loses nothing. A change that was
// applied survives the loss of the process and of the power where appendfsync
// is always. It may not survive a failover: replicas follow behind, and what
// the new primary has not seen is forgotten, unless Options.Replicas says to
// wait for them, which makes that unlikely but not impossible. Who needs more
// takes another store. See Check.
//
// # How a record lies there
//
// A record is one string, and a change is one script on it. Scripts travel in
// one pipeline per batch. A record outlives its lease: only the retention of
// what is at rest is a TTL, so there is nothing to purge.
//
// # Time
//
// The store's clock is the server's TIME.
//
// # Connections
//
// Open connects to nothing. Some connections of the pool are kept from reads,
// so that those who wait can't hold up those who renew and settle. The client
// library does not send anything again by itself; work on a connection that
// turns out to be lost is done once more on a new one.
package redislock

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
	"oncegate/lock/internal/calls"
)

// Options say where the server is and how to speak with it.
type Options struct {
	// URL is redis:// or rediss:// for one server, and redis+cluster:// or
	// rediss+cluster:// for a cluster, with further nodes as ?addr=host:port.
	// A Sentinel set is redis+sentinel://sentinel:26379/0?master_name=name,
	// with further sentinels as &addr=host:port. Its other parameters are
	// go-redis's.
	URL string
	// Password, if not nil, is asked for the password before each new
	// connection, so that it may change. It must not block for long.
	Password func(context.Context) (string, error)
	// TLS, if not nil, takes the place of what URL says of TLS.
	TLS *tls.Config
	// Pool is the most connections at a time, to each node, at least 2. Zero
	// means 8.
	Pool int
	// Prefix begins every key. Empty means "oncegate:".
	Prefix string
	// Replicas is how many replicas must have a change before it counts as
	// applied: on their disks where the server has WAITAOF, which they then must
	// be set up for. Where they don't follow in time nobody knows whether it was.
	Replicas int
}

// A Store keeps records in Redis.
type Store struct {
	options Options
	client  redis.UniversalClient
	calls   calls.Calls
	reads   chan struct{} // as many as reads may go on at a time
	waitAOF atomic.Int32  // what is known of the server's WAITAOF
}

// Open returns the store that the options describe. It connects to nothing
// yet.
func Open(o Options) (*Store, error) {
	if o.Pool == 0 {
		o.Pool = 8
	}
	if o.Pool < 2 {
		return nil, fmt.Errorf("redis: a pool of %d is too small: one connection reads, so at least one more must write", o.Pool)
	}
	if o.Prefix == "" {
		o.Prefix = "oncegate:"
	}
	client, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	return &Store{options: o, client: client, reads: make(chan struct{}, o.Pool-max(1, o.Pool/4))}, nil
}

// Close implements lock.Store.
func (s *Store) Close() error {
	if !s.calls.Close() {
		return nil
	}
	return s.client.Close()
}

var _ interface {
	lock.Store
	lock.Catalog
	lock.Checker
} = (*Store)(nil)
