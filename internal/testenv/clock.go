package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Clock is the wall clock that a server's processes see: the host's, but for
// what a test puts it forward or back. Debian's libfaketime shows it to them, so
// it reaches what is linked dynamically: the database servers, and no program of
// Go's. Their monotonic clocks go on as they were, as when a real clock is set.
type Clock struct {
	file    string
	library string
}

// NewClock returns a clock that goes as the host's does. It ends with the test.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(found) == 0 {
		t.Fatal("testenv: libfaketime is not installed: apt-get install libfaketime (or make test as root, which does it)")
	}
	c := &Clock{file: filepath.Join(Dir(t), "clock"), library: found[0]}
	if err := c.Set(0); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := removeShared(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return c
}

// Set sets the clock so far before the host's, or behind it.
func (c *Clock) Set(ahead time.Duration) error {
	text := fmt.Sprintf("%+.6f\n", ahead.Seconds())
	next := c.file + ".next" // so that nobody reads half of it
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}

// Under makes the program see the clock from its next start on.
func (p *Process) Under(c *Clock) {
	env := p.command.Env
	if env == nil {
		env = os.Environ()
	}
	p.command.Env = append(env[:len(env):len(env)],
		// libc's own malloc goes before jemalloc's, which asks for the time before
		// libfaketime can tell it.
		"LD_PRELOAD="+c.library+" libc.so.6",
		"FAKETIME_TIMESTAMP_FILE="+c.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
	)
}

// removeShared removes the memory that libfaketime shares among a server's
// processes, where the first of them was killed.
func removeShared() error {
	for _, pattern := range []string{"/dev/shm/faketime_shm_*", "/dev/shm/sem.faketime_sem_*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, path := range found {
			pid, err := strconv.Atoi(path[strings.LastIndex(path, "_")+1:])
			if err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
				continue
			}
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	return nil
}
