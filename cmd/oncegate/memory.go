package main

import (
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// limitMemory lets the garbage collector work harder before the kernel kills the
// process: at nine tenths of what its control group may use. GOMEMLIMIT in the
// environment goes first.
func limitMemory(env []string, log *slog.Logger) {
	if slices.ContainsFunc(env, func(line string) bool { return strings.HasPrefix(line, "GOMEMLIMIT=") }) {
		return
	}
	if limit, ok := cgroupMemory(os.DirFS("/")); ok {
		debug.SetMemoryLimit(limit / 10 * 9)
		log.Debug("memory limit", "bytes", limit/10*9)
	}
}

// cgroupMemory returns the memory limit of this process's control group, or of
// one that holds it, whichever is least. It knows cgroup v2 alone.
func cgroupMemory(root fs.FS) (limit int64, ok bool) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(own)) {
		group, isV2 := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !isV2 {
			continue
		}
		for ; ; group = path.Dir(group) {
			text, err := fs.ReadFile(root, path.Join("sys/fs/cgroup", group, "memory.max"))
			n, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max": no limit
			if err == nil && parseErr == nil && n > 0 && (!ok || n < limit) {
				limit, ok = n, true
			}
			if group == "" || group == "." || group == "/" {
				return limit, ok
			}
		}
	}
	return 0, false
}
