package k8s

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"oncegate/internal/testenv"
)

// A platform engineer follows docs/kubernetes.md with a shop that exists, and
// each command does what the page says.
func TestPage(t *testing.T) {
	c := cluster{t.TempDir()}
	dir := place(t)
	// The shop is there, and has traffic.
	shell(t, c, dir, "kubectl apply -k shop")
	var forwarded func() int
	for _, block := range blocks(t) {
		out := shell(t, c, dir, block)
		switch {
		case forwarded == nil && strings.Contains(block, "kubectl apply -k"):
			forwarded = c.rollOut(t)
		case strings.Contains(block, "--count 2"):
			if !strings.Contains(out, "fresh") || !strings.Contains(out, "replay") {
				t.Errorf("two deliveries of one event: %s", out)
			}
			if n := forwarded(); n != 1 {
				t.Errorf("the app ran %d times", n)
			}
		}
	}
	if forwarded == nil {
		t.Fatal("nothing was applied")
	}
	c.lostNothing(t)
}

// lostNothing wants the cluster to have gone from the shop as it was to one whose
// app is reached through oncegate alone, and back, without a step at which the
// shop's Service leads nowhere.
func (c cluster) lostNothing(t *testing.T) {
	t.Helper()
	states, err := c.states()
	if err != nil {
		t.Fatal(err)
	}
	var steps []*Manifests
	for _, s := range states {
		m, err := s.manifests()
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, m)
	}
	closed := 0
	for i, next := range steps[1:] {
		if err := between(steps[i], next); err != nil {
			t.Errorf("step %d: %v", i+1, err)
		}
		if len(next.Policies) > 0 && !allowed(8080, next.Policies, next.Workloads[0].Template) {
			closed++
		}
	}
	last := steps[len(steps)-1]
	if _, there := Sidecar(&last.Workloads[0].Template.Spec); there || closed != 1 {
		t.Errorf("oncegate is there at the end: %v; the app's own port was closed by %d steps", there, closed)
	}
}

// rollOut starts a pod of what was applied, beside an app and a PostgreSQL
// server.
func (c cluster) rollOut(t *testing.T) (forwarded func() int) {
	t.Helper()
	states, err := c.states()
	if err != nil {
		t.Fatal(err)
	}
	m, err := states[len(states)-1].manifests()
	if err != nil {
		t.Fatal(err)
	}
	var secrets map[string]map[string]string
	if err := c.read(secretFile, &secrets); err != nil {
		t.Fatal(err)
	}
	p := newPod(t)
	p.hosts = "127.0.0.1 postgres.example\n"
	p.relay(t, "127.0.0.1:5432", postgres(t))
	forwarded = p.app(t, "127.0.0.1:8080")
	run := p.start(t, m, &m.Workloads[0].Template.Spec, secrets["oncegate"])
	command := slices.Concat([]string{lookPath(t, "env"), "-i"}, run.env, []string{lookPath(t, "nsenter")}, run.args)
	if err := c.write(execFile, command); err != nil {
		t.Fatal(err)
	}
	return forwarded
}

// blocks returns the page's commands.
func blocks(t *testing.T) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 8 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	return blocks
}

// place makes the folder in which the page begins: a shop's manifests, and this
// repository's beside them.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"examples/laravel/before": "shop", "": "oncegate/deploy/k8s"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(root, "deploy/k8s", from))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func shell(t *testing.T, c cluster, dir, commands string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if err := os.Symlink(self, filepath.Join(programs, "kubectl")); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// contain.sh is found from the folder of the tests.
	if err := os.Symlink(filepath.Join(here, "contain.sh"), filepath.Join(dir, "contain.sh")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), clusterVariable+"="+c.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%s%v", commands, out, err)
	}
	return string(out)
}

// postgres starts the server that the page's URL speaks of, and returns its
// address.
func postgres(t *testing.T) string {
	t.Helper()
	p := testenv.Postgres(t)
	p.Exec(t, "postgres", "CREATE ROLE oncegate LOGIN PASSWORD 'PASSWORD'")
	p.Exec(t, "postgres", "CREATE DATABASE oncegate OWNER oncegate")
	host, _, _ := strings.Cut(strings.SplitN(p.URL("oncegate"), "@", 2)[1], "/")
	return host
}

// relay carries connections from an address in the pod to one outside of it.
func (p *pod) relay(t *testing.T, inside, outside string) {
	t.Helper()
	l := p.listen(t, inside)
	ctx, stop := context.WithCancel(context.Background())
	var carrying sync.WaitGroup
	t.Cleanup(func() {
		stop()
		l.Close()
		carrying.Wait()
	})
	carry := func(to, from net.Conn) {
		defer context.AfterFunc(ctx, func() { to.Close() })()
		_, _ = io.Copy(to, from) // ends when either side does
		to.Close()
	}
	carrying.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // closed
			}
			far, err := net.Dial("tcp", outside)
			if err != nil {
				near.Close()
				continue
			}
			carrying.Go(func() { carry(near, far) })
			carrying.Go(func() { carry(far, near) })
		}
	})
}
