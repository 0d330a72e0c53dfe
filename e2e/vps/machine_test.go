package vps

import (
	"os"
	"strings"
	"testing"
)

// The machine is a whole one, and what is done to it is not done to this one.
func TestMachine(t *testing.T) {
	m := Boot(t)
	if got := strings.TrimSpace(m.Run(t, "cat /proc/1/comm; hostname; systemctl is-system-running --wait")); got != "systemd\nshop\nrunning" {
		t.Errorf("the server says %q", got)
	}
	m.Run(t, "touch /etc/only-there && systemd-run --wait --pipe true")
	if _, err := os.Stat("/etc/only-there"); !os.IsNotExist(err) {
		t.Errorf("a file made there is here: %v", err)
	}
	if out, err := m.Try(t, "echo before; false; echo after"); err == nil || out != "before\n" {
		t.Errorf("a script that fails ends with %v, and printed %q", err, out)
	}
}
