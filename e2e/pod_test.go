package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// Times in the pods of these tests, in the proportions of a real one's.
const (
	podLag    = 400 * time.Millisecond // until nobody sends to a pod any more that was told to end
	podHook   = 800 * time.Millisecond // the app's preStop
	podWork   = 300 * time.Millisecond // what the app takes for a request
	podDrains = "drain_delay: 600ms\ndrain_timeout: 10s"
)

// A podApp is an app's container: on SIGTERM it takes no more connections,
// finishes what it has within 5 s, and ends.
type podApp struct {
	server http.Server
	served chan error
	runs   *effects
}

// effects count what apps did, by event.
type effects struct{ counts sync.Map }

func (e *effects) add(body string) {
	n, _ := e.counts.LoadOrStore(body, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// startApp listens on an address at once.
func startApp(t *testing.T, address string, runs *effects) *podApp {
	t.Helper()
	l := testenv.Listen(t, address)
	a := &podApp{served: make(chan error, 1), runs: runs}
	a.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		time.Sleep(podWork)
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

// A podKind says in which order a pod's two containers start and end.
type podKind struct {
	name   string
	native bool
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
		p.app = startApp(t, address, runs)
	}
	p.gate = binary.Serve(t, harness.Config{Upstream: "http://" + address, Top: podDrains, Routes: route("wait: 5s"), StateDir: state})
	if k.native {
		p.app = startApp(t, address, runs)
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
	time.Sleep(podHook)
	p.app.term(t)
	if p.native {
		p.gate.Signal(t, syscall.SIGTERM) // when all others have ended
	}
	if code := p.gate.Wait(t, 15*time.Second); code != 0 {
		t.Errorf("oncegate ended with %d", code)
	}
}

// notReady waits until readiness says no, which is to be at once.
func (p *testPod) notReady(t *testing.T) {
	t.Helper()
	for began := time.Now(); time.Since(began) < podLag; time.Sleep(5 * time.Millisecond) {
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

// A service is what stands before pods: it chooses one that it takes for ready.
type service struct {
	mu   sync.Mutex // guards pods
	pods []*testPod
	turn atomic.Int64
}

func (s *service) set(pods ...*testPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = pods
}

func (s *service) url() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[int(s.turn.Add(1))%len(s.pods)].gate.URL
}

// load sends an event and asks for a page, each forty times a second, until stop
// is called, which returns how many were sent.
func (s *service) load(t *testing.T, first int) (stop func() int) {
	quit := make(chan struct{})
	sender := harness.NewSender()
	var sending sync.WaitGroup
	var sent int
	page := func() harness.Answer {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/page", nil)
		if err != nil {
			return harness.Answer{Err: err}
		}
		return sender.Do(request)
	}
	sending.Go(func() {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			event := harness.NewEvent(first + sent)
			sent++
			sending.Go(func() {
				if a := sender.Send(t.Context(), s.url()+harness.WebhookPath, event.Delivery()); !a.OK() || a.Result() != "fresh" {
					t.Errorf("event %s: %v", event.ID, a)
				}
			})
			sending.Go(func() {
				if a := page(); !a.OK() {
					t.Errorf("page: %v", a)
				}
			})
		}
	})
	return func() int {
		close(quit)
		sending.Wait()
		sender.Close()
		return sent
	}
}

func TestPodRollout(t *testing.T) {
	t.Parallel()
	for _, kind := range []podKind{{"native sidecar", true}, {"plain sidecar", false}} {
		t.Run("B67 "+kind.name+": nothing fails while pods come and go", func(t *testing.T) {
			t.Parallel()
			const rollouts = 4
			runs, state := new(effects), testenv.Dir(t)
			old := kind.start(t, state, runs)
			s := new(service)
			s.set(old)
			stop := s.load(t, 1)
			for range rollouts {
				next := kind.start(t, state, runs)
				s.set(old, next)
				time.Sleep(100 * time.Millisecond)
				var learnt sync.WaitGroup
				learnt.Go(func() {
					time.Sleep(podLag)
					s.set(next)
				})
				old.end(t)
				learnt.Wait()
				old = next
			}
			sent, ran := stop(), 0
			runs.counts.Range(func(body, n any) bool {
				ran++
				if n := n.(*atomic.Int64).Load(); n != 1 {
					t.Errorf("an event took effect %d times: %.60s", n, strings.Fields(body.(string)))
				}
				return true
			})
			if ran != sent || sent < 20 {
				t.Errorf("%d events were sent, and %d took effect", sent, ran)
			}
		})
	}
}
