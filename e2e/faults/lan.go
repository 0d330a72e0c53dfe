package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"oncegate/internal/testenv"
)

// The networks of a world.
const (
	front = iota // senders, operators and the witness reach gates, and are reached
	toStore
	toApp
	networks
)

var networkNames = [networks]string{"front", "store", "app"}

// mostLans bounds how many worlds have networks at one time on one machine.
const mostLans = 128

// A lan is a world's networks, made of the kernel's own: each gate is in a
// namespace, with a cable to each network, and all else stays in the test's. The
// bridges are in a namespace between them, so that a cable is pulled out in the
// middle: neither end sees it, connections stay, and what is sent is lost until
// the kernel sends it again. The namespaces end with the processes that hold
// them, and so with the test, however that ends.
type lan struct {
	number int
	hub    *testenv.Process
	gates  []*testenv.Process
}

// newLan makes networks for so many gates. Its error says why there can be none.
func newLan(t testing.TB, gates int) (*lan, error) {
	t.Helper()
	if err := namespaces(); err != nil {
		return nil, err
	}
	l := &lan{hub: holder(t)}
	for range gates {
		l.gates = append(l.gates, holder(t))
	}
	if err := l.reach(); err != nil {
		return nil, err
	}
	var within []string
	for n, name := range networkNames {
		within = append(within,
			"link add "+name+" type bridge stp_state 0 forward_delay 0 mcast_snooping 0", "link set "+name+" up",
			fmt.Sprintf("link set rest%d master %s up", n, name))
		for g, p := range l.gates {
			within = append(within,
				fmt.Sprintf("link add %s type veth peer name %s netns %d", cable(g, n), name, p.Pid()),
				"link set "+cable(g, n)+" master "+name+" up")
		}
	}
	errs := []error{ip(l.hub, within...)}
	for g, p := range l.gates {
		own := []string{"link set lo up"}
		for n, name := range networkNames {
			own = append(own, "addr add "+l.addr(n, g)+"/24 dev "+name, "link set "+name+" up")
		}
		errs = append(errs, ip(p, own...))
	}
	return l, errors.Join(errs...)
}

// newNetworks returns a lan for a world's two gates; nil, and says why, where
// there can be none. As root TestLan wants one.
func newNetworks(t testing.TB) *lan {
	l, err := newLan(t, 2)
	if err != nil {
		t.Logf("partitions are made by wires: %v", err)
		return nil
	}
	return l
}

// Partitions says by what this machine makes them.
func Partitions() string {
	if err := namespaces(); err != nil {
		return "wires, as far as they can: " + err.Error()
	}
	return "network namespaces"
}

// namespaces says why there are none of the network, if so.
func namespaces() error {
	if out, err := exec.Command("unshare", "--net", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("no network namespaces: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// holder starts a process that is alone in a network namespace.
func holder(t testing.TB) *testenv.Process {
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var p *testenv.Process
	p = testenv.NewProcess(testenv.Command{
		Name: "namespace", Path: "unshare", Args: []string{"--net", "sleep", "infinity"},
		Ready: func() error {
			its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.Pid()))
			if err == nil && its == ours {
				err = errors.New("still in the test's network")
			}
			return err
		},
	})
	t.Cleanup(func() { p.Kill(t) })
	p.Start(t)
	return p
}

// reach connects the test's own namespace, by names and addresses that no other
// world has.
func (l *lan) reach() (err error) {
	for ; l.number < mostLans; l.number++ {
		// To have made the first of them is to have the number.
		if err = ip(nil, l.end(front)); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("connect the test's network: %w", err)
	}
	own := []string{l.end(toStore), l.end(toApp)}
	for n := range networkNames {
		own = append(own, fmt.Sprintf("addr add %s/24 dev %s", l.addr(n, -1), l.device(n)), "link set "+l.device(n)+" up")
	}
	return ip(nil, own...)
}

// end makes the test's end of a cable.
func (l *lan) end(network int) string {
	return fmt.Sprintf("link add %s type veth peer name rest%d netns %d", l.device(network), network, l.hub.Pid())
}

// device is the test's in a network.
func (l *lan) device(network int) string {
	return fmt.Sprintf("faults%d%s", l.number, networkNames[network][:1])
}

// cable is the hub's end of a gate's.
func cable(gate, network int) string { return fmt.Sprintf("gate%d%s", gate, networkNames[network]) }

// addr is a gate's address in a network, and with -1 that of the test: of those
// that are set aside for tests of networks (RFC 2544).
func (l *lan) addr(network, gate int) string {
	subnet := networks*l.number + network
	return fmt.Sprintf("198.%d.%d.%d", 18+subnet/256, subnet%256, 2+gate)
}

// through is the command that runs another in a gate's namespace.
func (l *lan) through(gate int) []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", l.gates[gate].Pid()), "--"}
}

// pull pulls a gate's cable out, and plug puts it back.
func (l *lan) pull(network, gate int) error {
	return ip(l.hub, "link set "+cable(gate, network)+" nomaster")
}

func (l *lan) plug(network, gate int) error {
	return ip(l.hub, "link set "+cable(gate, network)+" master "+networkNames[network])
}

// mute loses all that is sent to a gate in a network, and only that; unmute ends it.
func (l *lan) mute(network, gate int) error {
	return ip(nil, "route add blackhole "+l.addr(network, gate)+"/32")
}

func (l *lan) unmute(network, gate int) error {
	return ip(nil, "route del blackhole "+l.addr(network, gate)+"/32")
}

// ip runs commands of ip's in a process's network namespace; nil: the test's.
func ip(in *testenv.Process, commands ...string) error {
	args := []string{"ip", "-batch", "-"}
	if in != nil {
		args = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", in.Pid()), "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
