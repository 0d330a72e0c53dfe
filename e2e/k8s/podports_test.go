package k8s

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// probe asks as kubelet does.
func (p *pod) probe(probe *corev1.Probe) error {
	if probe == nil || probe.HTTPGet == nil {
		return errors.New("there is no such probe")
	}
	response, err := p.client().Get(fmt.Sprintf("http://127.0.0.1:%d%s", probe.HTTPGet.Port.IntValue(), probe.HTTPGet.Path))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", probe.HTTPGet.Path, response.Status)
	}
	return nil
}

// listening returns the ports of the pod that others can reach, in order.
func (p *pod) listening(t *testing.T) (ports []int) {
	t.Helper()
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", p.pause.Pid(), table))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if fields[3] != "0A" { // LISTEN
				continue
			}
			host, port, _ := strings.Cut(fields[1], ":")
			address, err := hex.DecodeString(host)
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.ParseUint(port, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Max(address) == 0 { // any address
				ports = append(ports, int(n))
			}
		}
	}
	slices.Sort(ports)
	return ports
}

// imageEnv returns the variables that the Dockerfile sets; TestImage holds the
// image to them.
func imageEnv(t *testing.T) (env []string) {
	t.Helper()
	text, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\nENV ")
	if !found {
		t.Fatal("the Dockerfile sets no variables")
	}
	for _, pair := range regexp.MustCompile(`([A-Z_]+=\S+)( \\\n\s*|\n)`).FindAllStringSubmatch(after, -1) {
		env = append(env, pair[1])
		if pair[2] == "\n" {
			break
		}
	}
	return env
}

// static returns oncegate's command as the image has it: without libraries.
func static(t *testing.T) string {
	t.Helper()
	path, err := builtOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
