package faults

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"oncegate/internal/testenv"
)

// diskSize is more than a world ever writes.
const diskSize = "48m"

// A disk is a file system of a world's own, so that it can be filled.
type disk struct{ dir string }

// newDisk mounts one. It returns a plain folder, and false, where that is not
// allowed: then the disk is never full.
func newDisk(t testing.TB) (d disk, own bool) {
	t.Helper()
	d.dir = testenv.Dir(t)
	err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size="+diskSize)
	if errors.Is(err, syscall.EPERM) {
		t.Log("no disk is ever full here: to mount one takes root")
		return d, false
	}
	if err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, 0); err != nil {
			t.Errorf("unmount %s: %v", d.dir, err)
		}
	})
	return d, true
}

// folder makes a folder on the disk.
func (d disk) folder(name string) (string, error) {
	path := filepath.Join(d.dir, name)
	return path, os.Mkdir(path, 0o755)
}

// fill leaves no room on the disk until it is told to make some.
func (d disk) fill() (makeRoom func() error, err error) {
	path := filepath.Join(d.dir, "full")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	for size := 1 << 20; size > 0; size /= 2 { // to the last byte
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return nil, errors.Join(err, f.Close())
		}
		err = nil
	}
	return func() error { return os.Remove(path) }, f.Close()
}
