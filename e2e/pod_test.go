package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// podTimes are those in a pod's life.
type podTimes struct {
	lag    time.Duration // until nobody sends to a pod any more that was told to end
	hook   time.Duration // the app's preStop
	work   time.Duration // what the app takes for a request
	drains string        // oncegate's, as its configuration says them
}

// A podApp is an app's container: on SIGTERM it takes no more connections,
// finishes what it has within 5 s, and ends.
type podApp struct {
	server http.Server
	served chan error
}

// effects count what apps did, by event.
type effects struct{ counts sync.Map }

func (e *effects) add(body string) {
	n, _ := e.counts.LoadOrStore(body, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// startApp listens on an address at once, and takes a while for each request.
func startApp(t *testing.T, address string, work time.Duration, runs *effects) *podApp {
	t.Helper()
	l := testenv.Listen(t, address)
	a := &podApp{served: make(chan error, 1)}
	a.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		time.Sleep(work)
		if r.Method == http.MethodPost {
			runs.add(string(body))
		}
		fmt.Fprint(w, "done")
	})
	go func() { a.served <- a.server.Serve(l) }()
	t.Cleanup(func() { a.server.Close() })
	return a
}

func (a *podApp) term(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		t.Errorf("the app could not finish: %v", err)
	}
	<-a.served
}

// A podKind says in which order a pod's two containers start and end, and when.
type podKind struct {
	name   string
	native bool
	times  podTimes
}

// A testPod is an app and its oncegate.
type testPod struct {
	podKind
	app  *podApp
	gate *harness.Gate
}

// start does what kubelet does: a native sidecar is ready before the app is
// started, a plain one is started beside it.
func (k podKind) start(t *testing.T, state string, runs *effects) *testPod {
	t.Helper()
	p := &testPod{podKind: k}
	address := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	if !k.native {
		p.app = startApp(t, address, k.times.work, runs)
	}
	p.gate = binary.Serve(t, harness.Config{Upstream: "http://" + address, Top: k.times.drains, Routes: route("patience: 60s"), StateDir: state})
	if k.native {
		p.app = startApp(t, address, k.times.work, runs)
	}
	return p
}

// end does what kubelet does when a pod is told to end, up to its end.
func (p *testPod) end(t *testing.T) {
	t.Helper()
	if !p.native {
		p.gate.Signal(t, syscall.SIGTERM) // it has no hook
		p.notReady(t)
	}
	time.Sleep(p.times.hook)
	p.app.term(t)
	if p.native {
		p.gate.Signal(t, syscall.SIGTERM) // when all others have ended
	}
	if code := p.gate.Wait(t, 30*time.Second); code != 0 {
		t.Errorf("oncegate ended with %d", code)
	}
}

// notReady waits until readiness says no, which is to be so while the app's hook
// runs.
func (p *testPod) notReady(t *testing.T) {
	t.Helper()
	for began := time.Now(); time.Since(began) < p.times.hook; time.Sleep(5 * time.Millisecond) {
		response, err := http.Get(p.gate.Health + "/readyz")
		if err != nil {
			t.Errorf("readiness: %v", err)
			return
		}
		response.Body.Close()
		if response.StatusCode == http.StatusServiceUnavailable {
			return
		}
	}
	t.Error("still ready after SIGTERM")
}
