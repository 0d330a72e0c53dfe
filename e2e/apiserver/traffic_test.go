package apiserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"
)

// A traffic looks, again and again, at where a Service leads: to pods that listen
// on that port, and to which no policy closes it, and to at least one.
type traffic struct {
	api                *api
	namespace, service string

	stop    context.CancelFunc
	looking sync.WaitGroup
	mu      sync.Mutex // guards what follows
	looks   int
	lost    []error
}

// watch begins to look.
func (c *cluster) watch(t *testing.T, namespace, service string) *traffic {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := &traffic{api: c.api(), namespace: namespace, service: service, stop: stop}
	t.Cleanup(func() { w.end() })
	w.looking.Go(func() {
		for ctx.Err() == nil {
			err := w.look(ctx)
			if ctx.Err() == nil {
				w.note(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return w
}

func (w *traffic) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if n := len(w.lost); err != nil && (n == 0 || w.lost[n-1].Error() != err.Error()) {
		w.lost = append(w.lost, err)
	}
}

// end looks no more, and returns what was lost.
func (w *traffic) end() (looks int, lost error) {
	w.stop()
	w.looking.Wait()
	return w.looks, errors.Join(w.lost...)
}

func (w *traffic) look(ctx context.Context) error {
	var to slices
	var there pods
	var closed policies
	in := "/namespaces/" + w.namespace
	err := errors.Join(
		w.api.get(ctx, "/apis/discovery.k8s.io/v1"+in+"/endpointslices?labelSelector=kubernetes.io/service-name="+w.service, &to),
		w.api.get(ctx, "/api/v1"+in+"/pods", &there),
		w.api.get(ctx, "/apis/networking.k8s.io/v1"+in+"/networkpolicies", &closed))
	if err != nil {
		return err
	}
	reached := 0
	for _, slice := range to.Items {
		for _, endpoint := range slice.Endpoints {
			p := there.at(endpoint.Addresses[0])
			if p == nil || !endpoint.Conditions.Ready {
				continue // it has just gone
			}
			for _, port := range slice.Ports {
				if err := p.takes(port.Port, closed); err != nil {
					return err
				}
				reached++
			}
		}
	}
	if reached == 0 {
		return errors.New("the Service leads nowhere")
	}
	return nil
}

func (p pods) at(address string) *pod {
	for i := range p.Items {
		if p.Items[i].Status.PodIP == address {
			return &p.Items[i]
		}
	}
	return nil
}

// takes says why others can't reach a port of the pod.
func (p *pod) takes(port int, closed policies) error {
	listens := false
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		for _, declared := range c.Ports {
			listens = listens || declared.ContainerPort == port
		}
	}
	if !listens {
		return fmt.Errorf("nothing listens on port %d of a pod", port)
	}
	chosen, open := false, false
	for _, policy := range closed.Items {
		chooses := true
		for name, value := range policy.Spec.PodSelector.MatchLabels {
			chooses = chooses && p.Metadata.Labels[name] == value
		}
		chosen = chosen || chooses
		for _, rule := range policy.Spec.Ingress {
			for _, allowed := range rule.Ports {
				open = open || chooses && allowed.Port == port
			}
		}
	}
	if chosen && !open {
		return fmt.Errorf("a policy closes port %d of a pod", port)
	}
	return nil
}

// calm waits until the Service has led to the same places for two seconds: some
// seconds, as the page says.
func (w *traffic) calm(t *testing.T) {
	t.Helper()
	var last slices
	since := time.Now()
	for deadline := time.Now().Add(time.Minute); time.Since(since) < 2*time.Second; time.Sleep(100 * time.Millisecond) {
		var now slices
		if err := w.api.get(t.Context(), "/apis/discovery.k8s.io/v1/namespaces/"+w.namespace+"/endpointslices", &now); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(now, last) {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatal("endpoints still change after a minute")
		}
	}
}
