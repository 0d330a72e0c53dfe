//go:build linux

package forward_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// TestFullQueue: an app that is behind with accepting is waited for, over a Unix
// socket too.
func TestFullQueue(t *testing.T) {
	name := filepath.Join(t.TempDir(), "app.sock")
	l := listenShort(t, name)
	var queued []net.Conn
	for {
		c, err := net.Dial("unix", name)
		if err != nil {
			break
		}
		queued = append(queued, c)
	}
	if len(queued) == 0 {
		t.Fatal("nobody can connect")
	}
	short := client(t, &rawApp{Listener: l}, forward.Options{DialTimeout: 20 * time.Millisecond})
	_, _, err := read(t, short, post("{}"))
	wantError(t, err, forward.Unreached, false)

	answered := make(chan error, 1)
	cl := client(t, &rawApp{Listener: l}, forward.Options{DialTimeout: 20 * time.Second})
	go func() {
		a, err := cl.Forward(t.Context(), post("{}"))
		if err == nil {
			err = a.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("it was not waited: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for _, c := range queued {
		c.Close()
	}
	startRawOn(t, l, always(ok))
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

// listenShort listens with a queue as short as can be.
func listenShort(t *testing.T, name string) net.Listener {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
