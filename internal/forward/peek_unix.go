//go:build unix

package forward

import "syscall"

// quiet reports whether a kept connection is open and silent. It reads without
// waiting and without taking anything away: a close by the app, or bytes that
// nobody asked for (half an answer to somebody else, say), make it unusable.
func (c *conn) quiet() bool {
	if c.raw == nil || c.in.Buffered() > 0 {
		return false
	}
	open := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN
		return true
	})
	return err == nil && open
}
