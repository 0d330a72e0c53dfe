//go:build unix

package doctor

import "golang.org/x/sys/unix"

// mayWrite says why this user can't make files in a folder, if that is so.
func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
