package health

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

// B69 a flood holds up no probe.
func TestFlood(t *testing.T) {
	s, url, _ := start(t, func() StoreState { return StoreUnasked })
	s.Ready()
	for range 2 * mostConnections {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// Half a head. The connection may have been ended by those after it.
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Flood: "); err != nil && !ended(err) {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		if code, body := get(t, "GET", url+path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// One more connection than there may be ends the oldest, and one that was closed
// leaves its place to another.
func TestRecent(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &recent{Listener: inner, most: 2}
	defer l.Close()
	connect := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		if server, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		return client, server
	}
	says := func(client, server net.Conn) error {
		if _, err := server.Write([]byte("x")); err != nil {
			return err
		}
		_, err := client.Read(make([]byte, 1))
		return err
	}
	c1, s1 := connect()
	c2, s2 := connect()
	c3, s3 := connect()
	if err := says(c1, s1); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the oldest of three: %v", err)
	}
	if err := s2.Close(); err != nil {
		t.Error(err)
	}
	c4, s4 := connect()
	if err := errors.Join(says(c3, s3), says(c4, s4)); err != nil {
		t.Errorf("those that were left: %v", err)
	}
	c5, s5 := connect()
	if err := says(c3, s3); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the oldest of those that were left: %v", err)
	}
	if err := errors.Join(says(c4, s4), says(c5, s5)); err != nil {
		t.Errorf("the last two: %v", err)
	}
	if _, err := c2.Read(make([]byte, 1)); !ended(err) {
		t.Errorf("one that was closed: %v", err)
	}
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
