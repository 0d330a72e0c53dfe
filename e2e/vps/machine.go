// Package vps boots a server for a test: systemd as its first process, the
// programs of this machine, and a network, processes and a file system of its
// own. It is what a small shop rents, in the state in which a test needs it.
//
//	m := vps.Boot(t)
//	m.Run(t, "dpkg -i ./oncegate_1.0.0_amd64.deb && systemctl start oncegate")
//	answer, err := m.Client().Get("http://127.0.0.1/")
//
// Nothing is simulated but the hardware: a layer in memory over this machine's
// own files takes every change, Linux's namespaces keep all else apart, and when
// the test ends, or is killed, the kernel takes it all away. Only root can do
// that.
package vps

import (
	"bytes"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oncegate/internal/testenv"
)

//go:embed boot.sh
var bootScript []byte

// bootTime bounds how long systemd may take to bring up its basic units, and
// runTime how long one script may take.
const (
	bootTime = 60 * time.Second
	runTime  = 3 * time.Minute
)

// A Machine is a running server.
type Machine struct {
	pid int // of its systemd, as this machine counts
}

// Boot starts a machine and waits until its systemd is up. It ends with the
// test.
func Boot(t testing.TB) *Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test boots a server in namespaces of its own, which takes root: run it as root")
	}
	for _, program := range []string{"unshare", "nsenter", "ip", "/lib/systemd/systemd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: apt-get install systemd util-linux iproute2 (or make test as root, which does it)", err)
		}
	}
	dir := testenv.Dir(t)
	script := filepath.Join(testenv.Dir(t), "boot.sh")
	if err := os.WriteFile(script, bootScript, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &Machine{}
	testenv.Run(t, testenv.Command{
		Name: "the server's systemd", Path: "unshare",
		Args:  []string{"--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child=SIGKILL", "bash", script, dir},
		Ready: func() error { return m.booted(script) },
		// systemd, as the first process, would take SIGTERM for something else.
		StopSignal: syscall.SIGKILL,
	})
	return m
}

// booted looks for the machine's first process, and asks its systemd.
func (m *Machine) booted(script string) error {
	if m.pid == 0 {
		pid, err := firstProcess(script)
		if err != nil {
			return err
		}
		m.pid = pid
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	out, err := m.command(ctx, "systemctl is-active server.target").CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemd is not up: %w: %s", err, out)
	}
	return nil
}

// firstProcess finds the process that unshare has started with the script, once
// that has become systemd.
func firstProcess(script string) (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || !bytes.HasPrefix(text, []byte("unshare\x00")) || !bytes.Contains(text, []byte(script)) {
			continue
		}
		id := filepath.Base(filepath.Dir(line))
		children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
		if err != nil {
			return 0, err
		}
		child := strings.TrimSpace(string(children))
		name, err := os.ReadFile("/proc/" + child + "/comm")
		if err != nil || strings.TrimSpace(string(name)) != "systemd" {
			return 0, errors.New("the boot script has not come to its end")
		}
		return strconv.Atoi(child)
	}
	return 0, errors.New("unshare has not started")
}

// command prepares a script that bash runs on the machine, in /root as root.
func (m *Machine) command(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(m.pid), "--all", "--root",
		"env", "-i", "--chdir=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		"bash", "-euo", "pipefail", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	return cmd
}

// Run runs a script on the machine as root would type it, in bash, fails the
// test if any command of it fails, and returns what it printed.
func (m *Machine) Run(t testing.TB, script string) string {
	t.Helper()
	out, err := m.Try(t, script)
	if err != nil {
		log, _ := m.Try(t, "journalctl --no-pager -n 30 -o cat") // a help only
		t.Fatalf("on the server: %v\n%s\nprinted:\n%s\nits journal ends with:\n%s", err, script, out, log)
	}
	return out
}

// Try is Run for scripts that may fail.
func (m *Machine) Try(t testing.TB, script string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	out, err := m.command(ctx, script).CombinedOutput()
	return string(out), err
}

// Path returns the name by which this machine reaches a file of that one.
func (m *Machine) Path(name string) string { return fmt.Sprintf("/proc/%d/root%s", m.pid, name) }

// Write writes a file on the machine.
func (m *Machine) Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(m.Path(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Dial connects from within the machine, as one of its own processes would.
func (m *Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.pid))
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	// A network belongs to a thread. It must be given back, not left to die: it may
	// have started processes, which the kernel would end with it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the server's network: %w", err)
	}
	// An address needs no look-up, so the dialer stays on this thread.
	conn, dialing := (&net.Dialer{}).DialContext(ctx, network, address)
	if err := unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET); err != nil {
		panic("a thread is lost in another network: " + err.Error())
	}
	return conn, dialing
}

// Client returns an HTTP client within the machine. Every name leads to the
// machine itself; no redirect is followed and no certificate is judged.
func (m *Machine) Client() *http.Client {
	return &http.Client{
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(address)
				if err != nil {
					return nil, err
				}
				return m.Dial(ctx, network, net.JoinHostPort("127.0.0.1", port))
			},
		},
	}
}
