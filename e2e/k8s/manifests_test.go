package k8s

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"oncegate/e2e/harness"
)

const examples = root + "/deploy/k8s/examples/"

// What the Secret holds in each example's cluster. Nothing answers where the
// stores would be: a pod must come up all the same.
var (
	onPostgres = map[string]string{"stripe": harness.Secret, "store": "postgres://once:secret@127.0.0.1:5432/once"}
	onRedis    = map[string]string{"stripe": harness.Secret, "store": "rediss://:secret@127.0.0.1:6379"}
	onSQLite   = map[string]string{"stripe": harness.Secret}
)

func TestExamples(t *testing.T) {
	for _, example := range []struct {
		after, before string
		secret        map[string]string
		app           string // where it listens in the pod
		results       []string
	}{
		{"laravel/postgres", "laravel/before", onPostgres, "127.0.0.1:8080", []string{"unavailable"}},
		{"laravel/redis", "laravel/before", onRedis, "127.0.0.1:8080", []string{"unavailable"}},
		{"laravel/sqlite", "laravel/before", onSQLite, "127.0.0.1:8080", []string{"fresh", "replay"}},
		{"laravel/plain", "laravel/before", onPostgres, "127.0.0.1:8080", []string{"unavailable"}},
		{"fastcgi/after", "fastcgi/before", onPostgres, "127.0.0.1:9000", nil},
		{"job", "", onPostgres, "127.0.0.1:8080", []string{"unavailable"}},
	} {
		t.Run(example.after, func(t *testing.T) {
			m := mustBuild(t, examples+example.after)
			if len(m.Workloads) != 1 {
				t.Fatalf("%d workloads", len(m.Workloads))
			}
			pods := m.Workloads[0].Template
			if example.before != "" {
				untouched(t, mustBuild(t, examples+example.before).Workloads[0].Template, pods)
			}
			restricted(t, pods)
			connected(t, m, pods)
			serves(t, m, pods, example.secret, example.app, example.results)
		})
	}
}

// untouched wants the containers of the app to be what they were.
func untouched(t *testing.T, before, after *corev1.PodTemplateSpec) {
	t.Helper()
	without := slices.DeleteFunc(Containers(&after.Spec), func(c corev1.Container) bool { return c.Name == "oncegate" })
	if want := Containers(&before.Spec); !reflect.DeepEqual(without, want) {
		t.Errorf("the app's containers were changed:\n%+v\n%+v", without, want)
	}
}

// restricted wants a namespace that enforces Pod Security's strictest level to
// take the pod.
func restricted(t *testing.T, pods *corev1.PodTemplateSpec) {
	t.Helper()
	if err := admit(pods); err != nil {
		t.Errorf("refused: %v", err)
	}
	c, ok := Sidecar(&pods.Spec)
	if !ok {
		t.Fatal("no oncegate")
	}
	if !*c.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("its root can be written to")
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("resources: %+v", c.Resources)
	}
	if !c.Resources.Limits.Cpu().IsZero() {
		t.Error("it would be throttled")
	}
}

// connected wants every reference to lead somewhere, and traffic to go through
// oncegate alone.
func connected(t *testing.T, m *Manifests, pods *corev1.PodTemplateSpec) {
	t.Helper()
	c, _ := Sidecar(&pods.Spec)
	var ports []int
	for _, p := range c.Ports {
		ports = append(ports, int(p.ContainerPort))
	}
	for _, s := range m.Services {
		if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pods.Labels)) {
			t.Errorf("service %s chooses other pods", s.Name)
		}
		if got := s.Spec.Ports[0].TargetPort.IntValue(); got != ports[0] {
			t.Errorf("service %s leads to port %d, not to %d", s.Name, got, ports[0])
		}
	}
	if len(m.Policies) != 1 {
		t.Fatalf("%d network policies", len(m.Policies))
	}
	p := m.Policies[0].Spec
	if !labels.SelectorFromSet(p.PodSelector.MatchLabels).Matches(labels.Set(pods.Labels)) {
		t.Error("the network policy chooses other pods")
	}
	var open []int
	for _, port := range p.Ingress[0].Ports {
		open = append(open, port.Port.IntValue())
	}
	if len(p.Ingress) != 1 || !slices.Equal(open, ports) {
		t.Errorf("the network policy opens %v, oncegate has %v", open, ports)
	}
	reckons(t, c, &pods.Spec)
	for _, monitor := range m.PodMonitors {
		if app := pods.Labels[monitor.Spec.JobLabel]; app == "" {
			t.Errorf("alerts can't tell this app from another in its namespace: its pods have no label %q", monitor.Spec.JobLabel)
		}
		endpoint := monitor.Spec.PodMetricsEndpoints[0]
		if endpoint.Path != "/metrics" || endpoint.Port == nil || !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == *endpoint.Port && p.ContainerPort == 9180 }) {
			t.Errorf("the pod monitor looks at %+v", endpoint)
		}
	}
}

// reckons wants oncegate to be told of no more time than the pod has at its end, so
// that what it refuses at the start is what would not fit.
func reckons(t *testing.T, c corev1.Container, pods *corev1.PodSpec) {
	t.Helper()
	grace := 30 * time.Second // Kubernetes' own
	if s := pods.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "ONCEGATE_KILLED_AFTER" })
	if i < 0 {
		t.Fatal("oncegate is not told when it is killed")
	}
	if told, err := time.ParseDuration(c.Env[i].Value); err != nil || told > grace {
		t.Errorf("B67 oncegate is told of %s, and killed after %v (%v)", c.Env[i].Value, grace, err)
	}
}

// serves runs the pod's oncegate, and holds what the manifest says of it against
// what it does.
func serves(t *testing.T, m *Manifests, pods *corev1.PodTemplateSpec, secret map[string]string, app string, results []string) {
	p := newPod(t)
	forwarded := p.app(t, app)
	run := p.start(t, m, &pods.Spec, secret)
	c, _ := Sidecar(&pods.Spec)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if err := p.probe(probe); err != nil {
			t.Errorf("B69 %v", err)
		}
	}
	ports := p.listening(t)
	for _, declared := range c.Ports {
		if !slices.Contains(ports, int(declared.ContainerPort)) {
			t.Errorf("nothing listens on port %d, but on %v", declared.ContainerPort, ports)
		}
	}
	if len(ports) != len(c.Ports) {
		t.Errorf("others can reach ports %v, and the manifest says %+v", ports, c.Ports)
	}
	if port := pods.Annotations["prometheus.io/port"]; port != "" {
		if metrics := p.get(t, "http://127.0.0.1:"+port+pods.Annotations["prometheus.io/path"]); !strings.Contains(metrics, "oncegate_") {
			t.Errorf("no metrics where the annotations say: %.200s", metrics)
		}
	}
	if metrics, want := p.get(t, "http://127.0.0.1:9180/metrics"), float64(c.Resources.Limits.Memory().Value()/10*9); !strings.Contains(metrics, fmt.Sprintf("\ngo_gc_gomemlimit_bytes %v\n", want)) {
		t.Errorf("the collector doesn't keep to %v bytes", want)
	}
	sends(t, p, forwarded, results)
	if out, err := run.exec("check", "--config", "/etc/oncegate/oncegate.yaml"); err != nil || !strings.Contains(out, ", 0 warnings") {
		t.Errorf("check says %s (%v)", out, err)
	}
	run.Stop(t)
	if err := p.probe(c.LivenessProbe); err == nil {
		t.Error("it lives on after SIGTERM")
	}
}

// sends delivers one event as often as there are results.
func sends(t *testing.T, p *pod, forwarded func() int, results []string) {
	fresh := 0
	for _, want := range results {
		d := harness.NewEvent(1).Delivery()
		request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:9179"+harness.WebhookPath, strings.NewReader(string(d.Body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = d.Header
		response, err := p.client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Oncegate-Result"); got != want {
			t.Errorf("the answer is %s %s, not %s", response.Status, got, want)
		}
		if want == "fresh" {
			fresh++
		}
	}
	if got := forwarded(); got != fresh {
		t.Errorf("the app ran %d times, not %d", got, fresh)
	}
}

func (p *pod) get(t *testing.T, url string) string {
	t.Helper()
	response, err := p.client().Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A native sidecar is started before the app's containers and ended after them; a
// plain one is not.
func TestKindsOfSidecar(t *testing.T) {
	for example, native := range map[string]bool{"laravel/postgres": true, "job": true, "laravel/plain": false} {
		m, err := Build(examples + example)
		if err != nil {
			t.Fatal(err)
		}
		spec := m.Workloads[0].Template.Spec
		if got := len(spec.InitContainers) > 0 && spec.InitContainers[0].Name == "oncegate"; got != native {
			t.Errorf("%s: native %v", example, got)
		}
		c, _ := Sidecar(&spec)
		if always := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways; always != native {
			t.Errorf("%s: restartPolicy %v", example, c.RestartPolicy)
		}
		if c.Lifecycle != nil {
			t.Errorf("%s: B67 a hook would run when the pod is told to end, and undo the order", example)
		}
	}
}

// Labels say what gets oncegate and what does not.
func TestLabels(t *testing.T) {
	m, err := Build("testdata/mixed")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Workloads {
		if _, got := Sidecar(&w.Template.Spec); got != (w.Kind == "StatefulSet") || got != (w.Template.Labels["oncegate"] == "sidecar") {
			t.Errorf("%s %s has oncegate: %v, labels %v", w.Kind, w.Name, got, w.Template.Labels)
		}
	}
	for _, s := range m.Services {
		if got := s.Spec.Ports[0].TargetPort.IntValue() == 9179; got != (s.Name == "shop") {
			t.Errorf("service %s leads to oncegate: %v", s.Name, got)
		}
	}
	if len(m.Workloads) != 3 || len(m.Services) != 2 {
		t.Errorf("%d workloads and %d services", len(m.Workloads), len(m.Services))
	}
}
