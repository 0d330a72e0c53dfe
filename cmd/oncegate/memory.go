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
// one that holds it, whichever is least, in version 2 and in version 1.
func cgroupMemory(root fs.FS) (limit int64, ok bool) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(own)) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		var folder, file string
		switch {
		case hierarchy == "0" && controllers == "":
			folder, file = "sys/fs/cgroup", "memory.max"
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be the host's, whose own end is all there is.
		for group = path.Join("/", group); ; group = path.Dir(group) {
			n, found := readLimit(root, path.Join(folder, group, file))
			if found && (!ok || n < limit) {
				limit, ok = n, true
			}
			if group == "/" {
				break
			}
		}
	}
	return limit, ok
}

// readLimit reads a limit in bytes. Version 2 writes max for none, version 1 a
// number that no machine has.
func readLimit(root fs.FS, name string) (limit int64, ok bool) {
	const most = 1 << 60
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	limit, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return limit, err == nil && limit > 0 && limit < most
}
