package testenv

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A RedisServer is a running redis-server, or valkey-server, with its data in a
// folder of its own.
type RedisServer struct {
	*Process
	// Addr is its host:port; URL the same as a redis:// URL of database 0.
	Addr, URL string
	// Dir holds its data, and redis.conf.
	Dir string
}

// Redis starts a redis-server for one test. It keeps what it was told on disk
// before it answers (appendonly, fsync always) and evicts nothing, as a store
// needs it; directives, each a line of redis.conf such as "maxmemory 20mb",
// say otherwise.
func Redis(t testing.TB, directives ...string) *RedisServer {
	t.Helper()
	return forTest(t, func(dir string) (*RedisServer, error) { return newRedis(dir, "redis-server", directives) })
}

// Valkey starts a valkey-server for one test, set up as Redis sets up its server.
func Valkey(t testing.TB, directives ...string) *RedisServer {
	t.Helper()
	return forTest(t, func(dir string) (*RedisServer, error) { return newRedis(dir, "valkey-server", directives) })
}

// newRedis takes the name of a program, which is that of its Debian package too.
func newRedis(dir, name string, directives []string) (*RedisServer, error) {
	path, err := program(name, name)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	conf := append([]string{
		"port " + strconv.Itoa(port),
		"bind 127.0.0.1",
		"daemonize no",
		"dir " + dir,
		`save ""`,
		"appendonly yes",
		"appendfsync always",
		"maxmemory-policy noeviction",
	}, directives...)
	file := dir + "/redis.conf"
	if err := os.WriteFile(file, []byte(strings.Join(conf, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	return &RedisServer{
		Process: NewProcess(Command{
			Name: name, Path: path, Args: []string{file}, Dir: dir, Unprivileged: true,
			Ready: func() error { return askRedis(addr) },
		}),
		Addr: addr, URL: "redis://" + addr + "/0", Dir: dir,
	}, nil
}

// askRedis sends an INFO and wants to read that nothing is being loaded. A
// server that asks for a password serves too.
func askRedis(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if line = strings.TrimSpace(line); line != "+PONG" && !strings.HasPrefix(line, "-NOAUTH") {
		return fmt.Errorf("PING was answered %q", line)
	}
	return nil
}
