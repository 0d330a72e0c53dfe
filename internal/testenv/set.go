package testenv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// A server is what each kind of server is to those who start and stop it.
type server interface {
	start() error
	stop() error
	report(t testing.TB)
}

// forTest makes a server in a folder of its own, starts it, and stops it when
// the test ends.
func forTest[S server](t testing.TB, create func(dir string) (S, error)) S {
	t.Helper()
	s, err := create(Dir(t))
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("testenv: %v", err)
		}
		s.report(t)
	})
	if err := s.start(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return s
}

// A Set holds the servers that the tests of one package share. Each is started
// when the first test asks for it, and all are stopped by Run. The zero Set is
// ready for use; its methods may be called by parallel tests.
//
// A test that pauses, kills or reconfigures a server starts one of its own
// instead.
type Set struct {
	mu       sync.Mutex // guards what follows
	stops    []func() error
	mariadb  shared[*MariaDBServer]
	postgres shared[*PostgresServer]
	redis    shared[*RedisServer]
}

// Run runs the package's tests, stops the servers that they started, and
// returns the exit code for TestMain.
func (s *Set) Run(m *testing.M) int { return s.run(m, os.Stderr) }

func (s *Set) run(m *testing.M, stderr io.Writer) int {
	code := m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for _, stop := range s.stops {
		failed = errors.Join(failed, stop())
	}
	if failed != nil {
		fmt.Fprintln(stderr, "testenv:", failed)
		code = max(code, 1)
	}
	return code
}

// MariaDB returns the package's MariaDB server.
func (s *Set) MariaDB(t testing.TB) *MariaDBServer {
	t.Helper()
	return get(t, s, &s.mariadb, func(dir string) (*MariaDBServer, error) { return newMariaDB(dir, nil) })
}

// Redis returns the package's Redis server, set up as Redis sets up its own.
// Tests that share it keep apart by the namespaces of their keys.
func (s *Set) Redis(t testing.TB) *RedisServer {
	t.Helper()
	return get(t, s, &s.redis, func(dir string) (*RedisServer, error) { return newRedis(dir, "redis-server", nil) })
}

// shared is one server of a Set: not asked for yet, running, or failed for
// good.
type shared[S server] struct {
	asked  bool
	server S
	err    error
}

// get starts a server when it is first asked for, and reports its failure to
// every test that asks.
func get[S server](t testing.TB, set *Set, one *shared[S], create func(dir string) (S, error)) S {
	t.Helper()
	set.mu.Lock()
	defer set.mu.Unlock()
	if !one.asked {
		one.asked = true
		one.server, one.err = launch(set, create)
	}
	if one.err != nil {
		t.Fatalf("testenv: %v", one.err)
	}
	return one.server
}

// launch starts a server in a folder of its own, and leaves it to Run to stop
// the one and remove the other.
func launch[S server](set *Set, create func(dir string) (S, error)) (S, error) {
	dir, err := makeDir()
	if err != nil {
		return *new(S), err
	}
	set.stops = append(set.stops, func() error { return os.RemoveAll(dir) })
	s, err := create(dir)
	if err != nil {
		return s, err
	}
	// In front of the folder's removal.
	set.stops = append([]func() error{s.stop}, set.stops...)
	return s, s.start()
}

// databaseName makes a name that no other test uses.
func databaseName() string { return "t_" + strings.ToLower(rand.Text()[:16]) }
