package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// node puts all pods on a node that exists in name alone, says of each that it is
// ready, and lets those go that are told to end. So it stands for the scheduler and
// for kubelet, until the test ends.
func (c *cluster) node(t *testing.T) {
	t.Helper()
	a := c.api()
	object := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node"}}
	if err := a.call(t.Context(), http.MethodPost, "/api/v1/nodes", "application/json", object, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	addresses := 0
	working.Go(func() {
		for ctx.Err() == nil {
			var all pods
			err := a.get(ctx, "/api/v1/pods", &all)
			for i := range all.Items {
				if err == nil {
					err = a.tend(ctx, &all.Items[i], &addresses)
				}
			}
			if err != nil && ctx.Err() == nil {
				t.Logf("node: %v", err) // somebody else changed it; the next round sees
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// tend takes a pod one step on.
func (a *api) tend(ctx context.Context, p *pod, addresses *int) error {
	path := "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
	switch {
	case p.Metadata.DeletionTimestamp != "":
		return a.call(ctx, http.MethodDelete, path, "application/json", map[string]any{"gracePeriodSeconds": 0}, nil)
	case p.Spec.NodeName == "":
		return a.call(ctx, http.MethodPost, path+"/binding", "application/json", map[string]any{
			"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": p.Metadata.Name},
			"target": map[string]any{"apiVersion": "v1", "kind": "Node", "name": "node"},
		}, nil)
	case p.Status.PodIP == "":
		*addresses++
		address := fmt.Sprintf("10.1.%d.%d", *addresses/250, 1+*addresses%250)
		return a.call(ctx, http.MethodPatch, path+"/status", "application/merge-patch+json", map[string]any{"status": map[string]any{
			"phase": "Running", "podIP": address, "podIPs": []any{map[string]any{"ip": address}},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}}, nil)
	}
	return nil
}
