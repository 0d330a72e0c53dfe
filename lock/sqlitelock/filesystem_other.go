//go:build !linux

package sqlitelock

// networkFileSystem is known on Linux alone.
func networkFileSystem(string) (name string, known bool) { return "", false }
