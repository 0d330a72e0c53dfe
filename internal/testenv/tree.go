package testenv

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// signalTree sends a signal to a process and all that descend from it, and
// returns those it reached. Servers such as PostgreSQL put each child into a
// process group of its own, so a group would not hold them together. A process
// that is stopped forks no more, so a second look finds what the first missed.
func signalTree(root int, s syscall.Signal) []int {
	reached := make(map[int]bool)
	var order []int
	for {
		found := false
		for _, pid := range descendants(root) {
			if reached[pid] || syscall.Kill(pid, s) != nil {
				continue
			}
			reached[pid], found = true, true
			order = append(order, pid)
		}
		if !found {
			return order
		}
	}
}

// descendants lists root and its children, theirs, and so on, parents first.
// Processes that end while it looks are left out.
func descendants(root int) []int {
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pids[i]))
		if err != nil {
			continue
		}
		for _, task := range tasks {
			list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pids[i], task.Name()))
			if err != nil {
				continue
			}
			for field := range strings.FieldsSeq(string(list)) {
				if pid, err := strconv.Atoi(field); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}
