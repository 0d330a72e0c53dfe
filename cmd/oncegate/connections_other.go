//go:build !unix

package main

// maxConnections is how many public connections are accepted at a time; more
// wait in the kernel's queue.
func maxConnections() int { return 1 << 14 }
