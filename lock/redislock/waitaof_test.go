package redislock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/redislock"
)

// newer stands before a server and gives it WAITAOF, which Debian's does not
// have: it is answered with what the server says to WAIT.
type newer struct {
	addr, server string
	older        atomic.Bool // it has none any more
	asked        atomic.Int64
}

func newNewer(t *testing.T, server string) *newer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &newer{addr: l.Addr().String(), server: server}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { n.serve(client) })
		}
	})
	return n
}

// serve passes one command after the other, until a side ends.
func (n *newer) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", n.server)
	if err != nil {
		return
	}
	defer server.Close()
	commands, answers := bufio.NewReader(client), bufio.NewReader(server)
	for {
		command, err := message(commands)
		if err != nil {
			return
		}
		words := strings.Split(strings.ToUpper(string(command)), "\r\n")
		about := len(words) > 6 && words[2] == "COMMAND" && words[6] == "WAITAOF"
		waits := len(words) > 8 && words[2] == "WAITAOF"
		switch {
		case waits && n.older.Load():
			if _, err := io.WriteString(client, "-ERR unknown command\r\n"); err != nil {
				return
			}
			continue
		case waits:
			n.asked.Add(1)
			command = fmt.Appendf(nil, "*3\r\n$4\r\nWAIT\r\n%s\r\n%s\r\n%s\r\n%s\r\n", words[5], words[6], words[7], words[8])
		case about && !n.older.Load():
			command = []byte("*3\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n$4\r\nWAIT\r\n")
		}
		if _, err := server.Write(command); err != nil {
			return
		}
		answer, err := message(answers)
		if err != nil {
			return
		}
		if waits {
			answer = append([]byte("*2\r\n:1\r\n"), answer...)
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// message reads one message of Redis's protocol, whole.
func message(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if err != nil || n < 0 {
			return line, err
		}
		rest := make([]byte, n+2)
		_, err = io.ReadFull(in, rest)
		return append(line, rest...), err
	case '*', '~', '>', '%':
		if line[0] == '%' {
			n *= 2
		}
		for ; err == nil && n > 0; n-- {
			var part []byte
			part, err = message(in)
			line = append(line, part...)
		}
		return line, err
	}
	return line, nil
}

// B63: where the server has WAITAOF, replicas must have a change on their disks;
// and an older server that takes over is waited for as it can be.
func TestReplicasOnDisk(t *testing.T) {
	primary := testenv.Redis(t, "repl-diskless-sync-delay 0")
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := testenv.Redis(t, "replicaof "+host+" "+port, "appendonly no")
	server := newNewer(t, primary.Addr)
	s := opened(t, redislock.Options{URL: "redis://" + server.addr, Replicas: 1})
	apply := func(c lock.Change) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Apply(ctx, []lock.Change{c})
		return err
	}
	await(t, func() bool { return apply(change("first")) == nil })
	if server.asked.Load() == 0 {
		t.Error("WAITAOF was not used")
	}
	replica.Pause(t)
	if err := apply(change("alone")); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("with no replica that follows: %v", err)
	}
	replica.Resume(t)
	await(t, func() bool { return apply(change("followed")) == nil })

	server.older.Store(true)
	if err := apply(change("taken over")); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("right after an older server took over: %v", err)
	}
	before := server.asked.Load()
	if err := apply(change("taken over")); err != nil {
		t.Errorf("later: %v", err)
	}
	if server.asked.Load() != before {
		t.Error("WAITAOF was asked of a server without it")
	}
}
