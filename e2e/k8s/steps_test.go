package k8s

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A state is what a cluster has: manifests, by kind and name.
type state map[string]string

func objectKey(kind, name string) string { return strings.ToLower(kind) + "/" + name }

// manifests decodes them.
func (s state) manifests() (*Manifests, error) {
	m := newManifests()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if err := m.add([]byte(s[key])); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return m, nil
}

func (c cluster) stateFiles() ([]string, error) { // in order
	return filepath.Glob(filepath.Join(c.dir, "state-*.json"))
}

// states returns all that the cluster has been in, in order.
func (c cluster) states() ([]state, error) {
	files, err := c.stateFiles()
	if err != nil {
		return nil, err
	}
	states := make([]state, len(files))
	for i, file := range files {
		if err := c.read(filepath.Base(file), &states[i]); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// change makes the next state of the last one. What is no longer applied stays.
func (c cluster) change(f func(state) error) error {
	states, err := c.states()
	if err != nil {
		return err
	}
	next := state{}
	if n := len(states); n > 0 {
		next = states[n-1]
	}
	if err := f(next); err != nil {
		return err
	}
	return c.write(fmt.Sprintf("state-%03d.json", len(states)), next)
}

// between says which requests are lost while a cluster goes from one state to the
// next: Services, policies and pods change one after the other, in any order, and
// pods of both are there for a while.
func between(one, next *Manifests) (err error) {
	both := []*Manifests{one, next}
	for i, pods := range both {
		for j, services := range both {
			for k, policies := range both {
				for _, s := range services.Services {
					if lost := reaches(s, policies.Policies, pods.Workloads[0].Template); lost != nil {
						err = errors.Join(err, fmt.Errorf("pods %d, Services %d, policies %d: %w", i, j, k, lost))
					}
				}
			}
		}
	}
	return err
}

// reaches says which of a Service's ports lead nowhere in a pod, or where a policy
// lets nobody.
func reaches(s *corev1.Service, policies []*networkingv1.NetworkPolicy, pods *corev1.PodTemplateSpec) (err error) {
	var declared []corev1.ContainerPort
	for _, c := range Containers(&pods.Spec) {
		declared = append(declared, c.Ports...)
	}
	for _, p := range s.Spec.Ports {
		i := slices.IndexFunc(declared, func(d corev1.ContainerPort) bool {
			return d.ContainerPort == p.TargetPort.IntVal || d.Name != "" && d.Name == p.TargetPort.StrVal
		})
		if i < 0 {
			err = errors.Join(err, fmt.Errorf("service %s: nothing listens on %s", s.Name, p.TargetPort.String()))
		} else if !allowed(declared[i].ContainerPort, policies, pods) {
			err = errors.Join(err, fmt.Errorf("service %s: a policy closes %s", s.Name, p.TargetPort.String()))
		}
	}
	return err
}

// allowed reports whether policies let others reach a port of a pod. They add up.
func allowed(port int32, policies []*networkingv1.NetworkPolicy, pods *corev1.PodTemplateSpec) bool {
	chosen := false
	for _, p := range policies {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !selector.Matches(labels.Set(pods.Labels)) {
			continue
		}
		chosen = true
		for _, rule := range p.Spec.Ingress {
			for _, open := range rule.Ports {
				if *open.Port == intstr.FromInt32(port) {
					return true
				}
			}
		}
	}
	return !chosen
}
