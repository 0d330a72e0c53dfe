package k8s

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A shop that is unlike the examples gets oncegate as the page says for such a
// one, and nothing else of it changes.
func TestOtherShop(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"testdata/elsewhere": "", root + "/deploy/k8s": "oncegate/deploy/k8s"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "production/kustomization.yaml"), pageYAML(t), 0o644); err != nil {
		t.Fatal(err)
	}
	before, after := mustBuild(t, filepath.Join(dir, "shop")), mustBuild(t, filepath.Join(dir, "production"))
	web := after.workload(t, "storefront")

	was := before.workload(t, "storefront")
	untouched(t, was, web)
	if !reflect.DeepEqual(web.Annotations, was.Annotations) || !reflect.DeepEqual(web.Spec.SecurityContext, was.Spec.SecurityContext) || !reflect.DeepEqual(web.Spec.HostAliases, was.Spec.HostAliases) {
		t.Errorf("the pod is another: %+v", web)
	}
	if worker := after.workload(t, "worker"); !reflect.DeepEqual(worker, before.workload(t, "worker")) {
		t.Errorf("the worker is another: %+v", worker)
	}
	restricted(t, web)
	c, _ := Sidecar(&web.Spec)
	reckons(t, c, &web.Spec)
	for _, o := range after.Objects {
		if o.Namespace != "web" {
			t.Errorf("%s %s is in namespace %q", o.Kind, o.Name, o.Namespace)
		}
	}
	for _, port := range after.Services[0].Spec.Ports {
		if got := port.TargetPort.String(); got != map[string]string{"http": "9179", "metrics": "metrics"}[port.Name] {
			t.Errorf("port %s leads to %s", port.Name, got)
		}
	}
	if err := reaches(after.Services[0], after.Policies, web); err != nil {
		t.Error(err)
	}
	if allowed(8081, after.Policies, web) {
		t.Error("the app's own port is open to others")
	}

	p := newPod(t)
	forwarded := p.app(t, "127.0.0.1:8081")
	p.start(t, after, &web.Spec, onPostgres)
	if page := p.get(t, "http://127.0.0.1:9179/page"); page != "done" || forwarded() != 1 {
		t.Errorf("a page through oncegate: %q", page)
	}
	sends(t, p, func() int { return 0 }, []string{"unavailable"}) // nothing is where the store would be
}

// pageYAML is the kustomization that the page shows for such a shop.
func pageYAML(t *testing.T) []byte {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?ms)^```yaml\n(resources:.*?)^```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page shows no kustomization")
	}
	return m[1]
}

func mustBuild(t *testing.T, folder string) *Manifests {
	t.Helper()
	m, err := Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *Manifests) workload(t *testing.T, name string) *corev1.PodTemplateSpec {
	t.Helper()
	for _, w := range m.Workloads {
		if w.Name == name {
			return w.Template
		}
	}
	t.Fatalf("no workload %s", name)
	return nil
}
