//go:build unix

package lock

import (
	"errors"
	"os"
	"syscall"
)

// lockFile makes the file this process's own until it is closed.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrJournalBusy
	}
	return err
}
