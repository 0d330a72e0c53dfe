package faults

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

// TestLan pulls cables between a process in a gate's namespace and this one: what
// is sent meanwhile is lost, and comes when the cable is back, on the same
// connection. As root a machine must be able to.
func TestLan(t *testing.T) {
	l, err := newLan(t, 2)
	if err != nil && os.Geteuid() != 0 {
		t.Logf("partitions are made by wires: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", l.addr(toStore, -1)+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	through := l.through(1)
	testenv.Run(t, testenv.Command{
		Name: "talker", Path: through[0],
		Args: append(through[1:], "bash", "-c", `exec 3<>/dev/tcp/$0/$1; while read -u 3 line; do echo "$line" >&3; done`,
			l.addr(toStore, -1), listener.Addr().(*net.TCPAddr).AddrPort().String()[len(l.addr(toStore, -1))+1:]),
	})
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if from, _, _ := net.SplitHostPort(c.RemoteAddr().String()); from != l.addr(toStore, 1) {
		t.Errorf("it comes from %s", from)
	}
	echoes := func(within time.Duration, want bool) {
		t.Helper()
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 3)); (err == nil) != want {
			t.Errorf("an echo came: %v (%v)", !want, err)
		}
	}
	say := func() {
		t.Helper()
		if _, err := c.Write([]byte("hi\n")); err != nil {
			t.Fatal(err)
		}
	}
	say()
	echoes(30*time.Second, true)
	for what, do := range map[string][2]func(network, gate int) error{
		"pulled": {l.pull, l.plug}, "muted": {l.mute, l.unmute},
	} {
		if err := do[0](toStore, 0); err != nil { // another's
			t.Fatal(err)
		}
		say()
		echoes(30*time.Second, true)
		if err := do[0](toStore, 1); err != nil {
			t.Fatal(err)
		}
		say()
		echoes(300*time.Millisecond, false)
		for gate := range 2 {
			if err := do[1](toStore, gate); err != nil {
				t.Fatal(err)
			}
		}
		echoes(30*time.Second, true)
		t.Logf("%s, and all came", what)
	}
}
