//go:build linux

package forward_test

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// TestFullQueue: an app that is behind with accepting is waited for, over a Unix
// socket too.
func TestFullQueue(t *testing.T) {
	l, queued := fullSocket(t)
	short := client(t, &rawApp{Listener: l}, forward.Options{DialTimeout: 20 * time.Millisecond})
	_, _, err := read(t, short, post("{}"))
	wantError(t, err, forward.Unreached, false)

	const many = 8
	answered := make(chan error, many)
	cl := client(t, &rawApp{Listener: l}, forward.Options{DialTimeout: 20 * time.Second})
	for range many {
		go func() {
			a, err := cl.Forward(t.Context(), post("{}"))
			if err == nil {
				err = a.Body.Close()
			}
			answered <- err
		}()
	}
	select {
	case err := <-answered:
		t.Fatalf("it was not waited: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for _, c := range queued {
		c.Close()
	}
	startRawOn(t, l, always(ok))
	for range many {
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullQueueOfMany: those who wait leave the processor to the app.
func TestFullQueueOfMany(t *testing.T) {
	l, _ := fullSocket(t)
	cl := client(t, &rawApp{Listener: l}, forward.Options{DialTimeout: time.Second})
	before, start := processorTime(t), time.Now()
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if _, err := cl.Forward(t.Context(), post("{}")); err == nil {
				t.Error("it was reached")
			}
		})
	}
	all.Wait()
	if used, took := processorTime(t)-before, time.Since(start); used > took/2 {
		t.Errorf("waiting for %v took %v of the processor", took, used)
	}
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fullSocket listens at a socket whose queue is full of connections.
func fullSocket(t *testing.T) (net.Listener, []net.Conn) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "app.sock")
	l := listenShort(t, name)
	t.Cleanup(func() { l.Close() })
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
	return l, queued
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
