package k8s

import (
	"bytes"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What an API server would refuse is refused here too.
func TestValidation(t *testing.T) {
	m, err := Build(examples + "laravel/postgres")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*corev1.PodSpec){
		"a probe of no port":                       func(s *corev1.PodSpec) { s.InitContainers[0].LivenessProbe.HTTPGet.Port.IntVal = 0 },
		"a mount without its volume":               func(s *corev1.PodSpec) { s.Volumes = s.Volumes[1:] },
		"two ports of one name":                    func(s *corev1.PodSpec) { s.InitContainers[0].Ports[1].Name = s.InitContainers[0].Ports[0].Name },
		"probes of a container that is no sidecar": func(s *corev1.PodSpec) { s.InitContainers[0].RestartPolicy = nil },
	} {
		d := m.Workloads[0].Deployment.DeepCopy()
		spoil(&d.Spec.Template.Spec)
		if err := Validate(d); err == nil {
			t.Errorf("not refused: %s", name)
		}
	}
}

// A PodMonitor is held to the operator's own type.
func TestPodMonitorFields(t *testing.T) {
	text, err := os.ReadFile(root + "/deploy/k8s/pod-monitor/pod-monitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := new(Manifests).add(text); err != nil {
		t.Error(err)
	}
	for field, other := range map[string]string{"podMetricsEndpoints": "podMetricEndpoints", "port": "portName", "selector": "podSelector"} {
		if err := new(Manifests).add(bytes.Replace(text, []byte(field+":"), []byte(other+":"), 1)); err == nil {
			t.Errorf("not refused: a field %s", other)
		}
	}
}
