package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// nobody is the user that servers run as where the tests run as root: the one
// that every Unix has and that owns nothing.
const nobody = 65534

func unprivileged() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

// processAttributes says as whom a program runs, and what the kernel sends it
// when the test binary dies.
func processAttributes(asNobody bool, onDeath syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: onDeath}
	if asNobody {
		a.Credential = unprivileged()
	}
	return a
}

// UnprivilegedCommand prepares a program that runs once, as the servers' user.
func UnprivilegedCommand(dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = processAttributes(true, syscall.SIGKILL)
	return cmd
}

// Dir makes a folder that an unprivileged server can use, and removes it when
// the test ends. Its path is short, unlike t.TempDir's: a Unix socket's path
// has room for 107 bytes.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := makeDir()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return dir
}

func makeDir() (string, error) {
	dir, err := os.MkdirTemp("", "once-")
	if err != nil {
		return "", err
	}
	return dir, Own(dir)
}

// Own gives a file or folder to the user that servers run as.
func Own(path string) error {
	if c := unprivileged(); c != nil {
		return os.Chown(path, int(c.Uid), int(c.Gid))
	}
	return nil
}

// Port returns a loopback port that is free, and that stays free for a server
// to come back to: no other test gets it, in this binary or another, and it
// lies below the range from which the kernel serves outgoing connections.
func Port(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return port
}

func freePort() (int, error) {
	const low, high = 12000, 32000
	for range 1000 {
		port := low + rand.IntN(high-low)
		err := reserve(port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reserve port %d: %w", port, err)
		}
		err = probe(port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return port, err
	}
	return 0, errors.New("no free port on 127.0.0.1")
}

// reserve binds the port on 127.0.0.2, where no server listens, and keeps it
// until the process ends. It fails with EADDRINUSE where another has done so.
func reserve(port int) error {
	_, err := bind(port, [4]byte{127, 0, 0, 2}, false)
	return err
}

// probe fails with EADDRINUSE where somebody listens on the port. It does not
// listen: a program that is being started has a copy of each socket for a
// moment, and one that listens would be in the way after it was closed.
func probe(port int) error {
	fd, err := bind(port, [4]byte{127, 0, 0, 1}, true)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

func bind(port int, address [4]byte, shared bool) (fd int, err error) {
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if shared {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: address})
	}
	if err != nil {
		return 0, errors.Join(err, syscall.Close(fd))
	}
	return fd, nil
}

// Listen listens on an address where this process may have listened before: a
// program that is being started may hold a copy of that listener for a moment.
func Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(start) > 10*time.Second {
			t.Fatalf("testenv: %v", err)
		}
	}
}

// program finds an installed program, also in folders that are not on every
// user's PATH.
func program(name, debianPackage string, more ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, path := range append(more, "/usr/sbin/"+name, "/usr/local/sbin/"+name) {
		if _, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: apt-get install %s (or make test as root, which does it)", name, debianPackage)
}
