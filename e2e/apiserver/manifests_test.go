package apiserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const examples = "../../deploy/k8s/examples/"

// Every example is taken by a server that looks at each field, without a warning,
// and its controllers make pods of it where nothing but the strictest pods is
// allowed. What was applied stands: the same again changes nothing.
func TestExamples(t *testing.T) {
	c := newCluster(t)
	c.node(t)
	c.monitors(t)
	for _, example := range []struct{ folder, workload string }{
		{"laravel/before", "deployment/shop"},
		{"laravel/postgres", "deployment/shop"},
		{"laravel/redis", "deployment/shop"},
		{"laravel/sqlite", "deployment/shop"},
		{"laravel/plain", "deployment/shop"},
		{"fastcgi/before", "deployment/api"},
		{"fastcgi/after", "deployment/api"},
		{"job", "job/catch-up"},
	} {
		t.Run(example.folder, func(t *testing.T) {
			c.namespace(t, strings.ReplaceAll(example.folder, "/", "-"))
			c.take(t, examples+example.folder)
			if example.folder == "job" {
				c.await(t, "[[ $(kubectl get job catch-up -o jsonpath={.status.ready}) == 1 ]]")
			} else {
				c.kubectl(t, "", "kubectl rollout status --timeout=2m "+example.workload)
			}
		})
	}
}

// take applies a folder twice.
func (c *cluster) take(t *testing.T, folder string) {
	t.Helper()
	const apply = "kubectl apply --validate=strict -k "
	clean(t, c.kubectl(t, "", "kubectl apply --validate=strict --dry-run=server -k "+folder))
	clean(t, c.kubectl(t, "", apply+folder))
	for line := range strings.Lines(c.kubectl(t, "", apply+folder)) {
		if !strings.HasSuffix(line, " unchanged\n") {
			t.Errorf("applied again: %s", line)
		}
	}
}

// monitors makes the Prometheus operator's kind known, as its own definition has
// it.
func (c *cluster) monitors(t *testing.T) {
	t.Helper()
	const module = "github.com/prometheus-operator/prometheus-operator"
	dir, err := exec.Command("go", "list", "-modfile=kubernetes.mod", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	file := filepath.Join(strings.TrimSpace(string(dir)), "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml")
	c.kubectl(t, "", "kubectl apply --server-side -f "+file)
	c.await(t, "kubectl get podmonitors")
}

// A shop that is unlike the examples is taken with what the page says for such a
// one.
func TestOtherShop(t *testing.T) {
	c := newCluster(t)
	c.node(t)
	c.namespace(t, "web")
	dir := t.TempDir()
	for from, to := range map[string]string{"../k8s/testdata/elsewhere": "", "../../deploy/k8s": "oncegate/deploy/k8s"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	shown := regexp.MustCompile("(?ms)^```yaml\n(resources:.*?)^```").FindStringSubmatch(page(t))
	if err := os.WriteFile(filepath.Join(dir, "production/kustomization.yaml"), []byte(shown[1]), 0o644); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "", "kubectl create serviceaccount storefront")
	c.take(t, filepath.Join(dir, "production"))
	c.kubectl(t, "", "kubectl rollout status --timeout=2m deployment/storefront && kubectl rollout status --timeout=2m deployment/worker")
	w := c.watch(t, "web", "storefront")
	w.calm(t)
	if looks, lost := w.end(); lost != nil || looks == 0 {
		t.Errorf("%d looks: %v", looks, lost)
	}
}

// The server refuses what is wrong, so that it means something when it refuses
// nothing.
func TestRefused(t *testing.T) {
	c := newCluster(t)
	c.monitors(t)
	for _, wrong := range []struct{ name, change, says string }{
		{"a field that is none", "s/readOnlyRootFilesystem/readOnlyRoot/", `unknown field "spec.template.spec.initContainers[0].securityContext.readOnlyRoot"`},
		{"a probe of no port", "s/port: 9180$/port: 0/", "must be between 1 and 65535"},
		{"a PodMonitor's field that is none", "s/podMetricsEndpoints/endpoints/", `unknown field "spec.endpoints"`},
		{"rights that pods may not have", "s/allowPrivilegeEscalation: false/allowPrivilegeEscalation: true/", "would violate PodSecurity"},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			c.namespace(t, strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(wrong.name)))
			out, err := c.try(t, "", "kubectl kustomize "+examples+"laravel/redis | sed '"+wrong.change+"' | kubectl apply --validate=strict -f -")
			if !strings.Contains(out, wrong.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	t.Run("no such pod is made", func(t *testing.T) {
		out := c.kubectl(t, "", "kubectl wait --for=condition=ReplicaFailure --timeout=1m deployment/shop && kubectl get pods")
		if !strings.Contains(out, "No resources found") {
			t.Errorf("pods that may not be: %s", out)
		}
	})
}
