package apiserver

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A shop with traffic gets oncegate as docs/kubernetes.md says, command by command,
// and loses it again; at no moment does its Service lead nowhere.
func TestPage(t *testing.T) {
	c := newCluster(t)
	c.node(t)
	c.namespace(t, "page")
	dir := place(t)
	c.kubectl(t, dir, "kubectl apply -k shop && kubectl rollout status deployment/shop --timeout=2m")
	w := c.watch(t, "page", "shop")
	w.calm(t)
	for _, command := range commands(t) {
		clean(t, c.kubectl(t, dir, command))
		if strings.HasPrefix(command, "kubectl apply -k") {
			c.kubectl(t, dir, "kubectl rollout status deployment/shop --timeout=2m")
		}
		w.calm(t)
	}
	if looks, lost := w.end(); lost != nil || looks < 100 {
		t.Errorf("%d looks: %v", looks, lost)
	}
	if left := c.kubectl(t, dir, "kubectl get deployment/shop -o yaml"); strings.Contains(left, "oncegate") {
		t.Errorf("oncegate is still there:\n%s", left)
	}
}

// All at once, the Service leads to pods that don't have oncegate yet. This is why
// the page takes three steps, and it shows that the look at traffic sees such a
// thing.
func TestAllAtOnce(t *testing.T) {
	c := newCluster(t)
	c.node(t)
	c.namespace(t, "page")
	dir := place(t)
	c.kubectl(t, dir, "kubectl apply -k shop && kubectl rollout status deployment/shop --timeout=2m")
	w := c.watch(t, "page", "shop")
	w.calm(t)
	for _, command := range commands(t) {
		c.kubectl(t, dir, strings.Replace(command, "sidecar/pods]", "sidecar]", 1))
		if strings.HasPrefix(command, "kubectl apply -k") {
			break
		}
	}
	w.calm(t)
	if _, lost := w.end(); lost == nil {
		t.Error("no request would have been lost")
	}
}

// commands are the page's, but for those that need a container that runs.
func commands(t *testing.T) (commands []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(page(t), -1) {
		if strings.Contains(m[1], "<<") || strings.Contains(m[1], "\\\n") {
			commands = append(commands, m[1])
			continue
		}
		for line := range strings.Lines(m[1]) {
			if !strings.HasPrefix(line, "kubectl exec ") {
				commands = append(commands, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	if len(commands) < 10 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	return commands
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// place makes the folder in which the page begins.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"examples/laravel/before": "shop", "": "oncegate/deploy/k8s"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join("../../deploy/k8s", from))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
