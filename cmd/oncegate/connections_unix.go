//go:build unix

package main

import "syscall"

// maxConnections is how many public connections are accepted at a time; more
// wait in the kernel's queue. Each may need another one to the app, and the
// store, the health listener and the log must never find no descriptor left.
func maxConnections() int {
	const reserved, least, most = 128, 64, 1 << 16
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return least
	}
	files := min(uint64(limit.Cur), 2*most+reserved) //nolint:unconvert // FreeBSD's is signed
	return max(least, (int(files)-reserved)/2)
}
