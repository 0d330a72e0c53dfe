package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestFitting(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		memory, inHand int64
		want           int
		fits           bool
	}{
		{math.MaxInt64, 64 * mib, 10000, true},
		{4096 * mib, 64 * mib, 10000, true},
		{230 * mib, 64 * mib, (230 - 96 - 32) * mib / connectionRoom, true},
		{128 * mib, 64 * mib, 64, false},
		{16 * mib, 64 * mib, 64, false},
	} {
		if n, fits := fitting(10000, c.memory, c.inHand); n != c.want || fits != c.fits {
			t.Errorf("%d MiB, %d MiB in hand: %d, %v", c.memory/mib, c.inHand/mib, n, fits)
		}
	}
}

// A visitor is a connection to the server under test.
type visitor struct {
	net.Conn
	answers *bufio.Reader
}

func visit(t *testing.T, l net.Listener) *visitor {
	t.Helper()
	return visitAt(t, l.Addr().String())
}

func visitAt(t *testing.T, address string) *visitor {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &visitor{conn, bufio.NewReader(conn)}
}

func (v *visitor) ask(path string) {
	fmt.Fprintf(v, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path)
}

func (v *visitor) answered(t *testing.T) {
	t.Helper()
	response, err := http.ReadResponse(v.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
}

// closed wants the server to have closed the connection.
func (v *visitor) closed(t *testing.T) {
	t.Helper()
	if _, err := v.answers.ReadByte(); err != io.EOF {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// serveCrowd serves two connections at a time. /slow is answered when it is let.
func serveCrowd(t *testing.T) (l *crowd, let chan struct{}) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, let = newCrowd(inner, 2), make(chan struct{})
	server := &http.Server{ConnState: l.changed, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-let
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return l, let
}

// wantIdle waits until v is the last that became idle, which it does after it has
// its answer.
func (c *crowd) wantIdle(t *testing.T, v *visitor) {
	t.Helper()
	last := func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e := c.idle.Back(); e != nil {
			return e.Value.(*guest).RemoteAddr().String()
		}
		return ""
	}
	for start := time.Now(); last() != v.LocalAddr().String(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("the connection has not become idle")
		}
	}
}

func TestCrowd(t *testing.T) {
	t.Run("the longest idle makes room", func(t *testing.T) {
		l, _ := serveCrowd(t)
		var all []*visitor
		for range 5 {
			v := visit(t, l)
			v.ask("/")
			v.answered(t)
			l.wantIdle(t, v)
			all = append(all, v)
		}
		for _, v := range all[:3] {
			v.closed(t)
		}
		for _, v := range all[3:] {
			v.ask("/")
			v.answered(t)
		}
	})
	t.Run("who works is left alone, and who comes waits", func(t *testing.T) {
		l, let := serveCrowd(t)
		busy := []*visitor{visit(t, l), visit(t, l)}
		for _, v := range busy {
			v.ask("/slow")
		}
		late := visit(t, l)
		late.ask("/")
		if err := late.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := late.answers.Peek(1); err == nil {
			t.Error("a third connection was served beside two")
		}
		if err := late.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		late.answers.Reset(late)
		close(let)
		for _, v := range busy {
			v.answered(t)
		}
		late.answered(t)
	})
	t.Run("closing ends who waits", func(t *testing.T) {
		l, let := serveCrowd(t)
		busy := []*visitor{visit(t, l), visit(t, l)}
		for _, v := range busy {
			v.ask("/slow")
		}
		late := visit(t, l)
		late.ask("/")
		for len(l.places) < 2 {
			time.Sleep(time.Millisecond)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		_, _ = late.answers.Peek(1) // closed or reset, but over
		close(let)
		for _, v := range busy {
			v.answered(t)
		}
	})
}

// TestHeadLines: what a head may take of the memory is not only its bytes.
func TestHeadLines(t *testing.T) {
	l, _ := serveCrowd(t)
	head := func(lines int) string {
		return "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n" + strings.Repeat("X:\r\n", lines-3) + "\r\n"
	}
	body := strings.Repeat("\n", 20000)
	many := visit(t, l)
	for range 3 {
		_, _ = io.WriteString(many, head(headLines)+body)
		many.answered(t)
	}
	for name, v := range map[string]*visitor{"a second head": many, "a first head": visit(t, l)} {
		// That there are too many is seen when more is to be read.
		_, _ = io.WriteString(v, head(headLines+4<<10))
		r, err := http.ReadResponse(v.answers, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && r.StatusCode != 400 {
			t.Errorf("%s of too many lines was taken: %v", name, err)
		}
	}
}
