//go:build !unix

package lock

import "os"

// lockFile does nothing where files can't be locked: one process has the folder
// for itself.
func lockFile(*os.File) error { return nil }
