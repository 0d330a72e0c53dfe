//go:build unix

package main

import "golang.org/x/sys/unix"

// maxConnections is how many public connections are accepted at a time; more
// wait in the kernel's queue. Each may need another one to the app, and the
// store, the health listener and the log must never find no descriptor left.
func maxConnections() int {
	const reserved, least, most = 128, 64, 1 << 16
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 2*most+reserved {
		return most
	}
	return max(least, (int(limit.Cur)-reserved)/2)
}
