package k8s

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Manifests are what kustomize makes of a folder, by kind.
type Manifests struct {
	// Workloads are the Deployments, StatefulSets and Jobs.
	Workloads   []Workload
	Services    []*corev1.Service
	ConfigMaps  map[string]*corev1.ConfigMap
	Policies    []*networkingv1.NetworkPolicy
	Claims      []*corev1.PersistentVolumeClaim
	PodMonitors []*monitoringv1.PodMonitor
	Secrets     map[string]*corev1.Secret
	// Objects are all of them, as they are sent.
	Objects []Object
}

// An Object is one manifest.
type Object struct{ Kind, Namespace, Name, Text string }

// A Workload is something that makes pods.
type Workload struct {
	Kind, Name string
	Replicas   int32
	Template   *corev1.PodTemplateSpec
	Deployment *appsv1.Deployment // nil for others
}

// Build has kustomize build a folder, as `kubectl apply -k` does, and decodes
// and validates what it makes as an API server with strict field validation does: a
// field that the kind does not have, or has twice, is an error.
func Build(folder string) (*Manifests, error) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	m := newManifests()
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		m.Objects = append(m.Objects, Object{resource.GetKind(), resource.GetNamespace(), resource.GetName(), string(text)})
		if err := m.add(text); err != nil {
			return nil, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
	}
	return m, nil
}

func newManifests() *Manifests {
	return &Manifests{ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]*corev1.Secret{}}
}

func (m *Manifests) add(text []byte) error {
	scheme, err := kinds()
	if err != nil {
		return err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := strict.Decode(text, nil, nil)
	if err != nil {
		return err
	}
	if err := Validate(object); err != nil {
		return err
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		replicas := int32(1)
		if o.Spec.Replicas != nil {
			replicas = *o.Spec.Replicas
		}
		m.Workloads = append(m.Workloads, Workload{"Deployment", o.Name, replicas, &o.Spec.Template, o})
	case *appsv1.StatefulSet:
		m.Workloads = append(m.Workloads, Workload{"StatefulSet", o.Name, 1, &o.Spec.Template, nil})
	case *batchv1.Job:
		m.Workloads = append(m.Workloads, Workload{"Job", o.Name, 1, &o.Spec.Template, nil})
	case *corev1.Service:
		m.Services = append(m.Services, o)
	case *corev1.ConfigMap:
		m.ConfigMaps[o.Name] = o
	case *corev1.Secret:
		m.Secrets[o.Name] = o
	case *corev1.PersistentVolumeClaim:
		m.Claims = append(m.Claims, o)
	case *networkingv1.NetworkPolicy:
		m.Policies = append(m.Policies, o)
	case *monitoringv1.PodMonitor:
		m.PodMonitors = append(m.PodMonitors, o)
	default:
		return fmt.Errorf("a %T, of which the tests know nothing", object)
	}
	return nil
}

func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// Containers returns all containers of a pod, in the order in which they start.
func Containers(pod *corev1.PodSpec) []corev1.Container {
	return append(append([]corev1.Container(nil), pod.InitContainers...), pod.Containers...)
}

// Sidecar returns the oncegate of a pod.
func Sidecar(pod *corev1.PodSpec) (corev1.Container, bool) {
	for _, c := range Containers(pod) {
		if c.Name == "oncegate" {
			return c, true
		}
	}
	return corev1.Container{}, false
}

func (m *Manifests) configMaps() (names []string) {
	for name := range m.ConfigMaps {
		names = append(names, name)
	}
	return names
}
