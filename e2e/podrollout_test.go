package e2e

import (
	"flag"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// In both forms requests are in hand when the app is told to end, and the last of
// them has two seconds to arrive before that, however slow the machine is.
// `make rollouts` has a real pod's times.
var (
	rollouts    = flag.Int("pod.rollouts", 3, "how many rollouts there are")
	rolloutRate = flag.Int("pod.rate", 40, "how many events are sent a second, and as many pages are asked for")
	rolloutReal = flag.Bool("pod.real", false, "requests that take the app 3 s, a PostgreSQL server, and the times that docs/kubernetes.md speaks of")
)

func rolloutTimes() podTimes {
	if *rolloutReal {
		return podTimes{lag: 3 * time.Second, hook: 5 * time.Second, work: 3 * time.Second, drains: "drain_delay: 5s\ndrain_timeout: 13s\nstore_timeout: 10s"}
	}
	return podTimes{lag: 400 * time.Millisecond, hook: 2500 * time.Millisecond, work: 2600 * time.Millisecond, drains: "drain_delay: 2500ms\ndrain_timeout: 15s\nstore_timeout: 10s"}
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

// load sends events and asks for pages, so many a second, until stop is called,
// which returns how many events were sent. Every tenth is delivered twice at one
// time.
func (s *service) load(t *testing.T, rate int) (stop func() int) {
	quit := make(chan struct{})
	sender := harness.NewSender()
	var sending sync.WaitGroup
	var sent int
	deliver := func(event harness.Event, results string) {
		if a := sender.Send(t.Context(), s.url()+harness.WebhookPath, event.Delivery()); !a.OK() || !strings.Contains(results, a.Result()) {
			t.Errorf("event %s: %v", event.ID, a)
		}
	}
	page := func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/page", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if a := sender.Do(request); !a.OK() {
			t.Errorf("page: %v", a)
		}
	}
	sending.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			sent++
			event := harness.NewEvent(sent)
			if sent%10 == 0 {
				sending.Go(func() { deliver(event, "fresh waited replay") })
				sending.Go(func() { deliver(event, "fresh waited replay") })
			} else {
				sending.Go(func() { deliver(event, "fresh") })
			}
			sending.Go(page)
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
	for _, kind := range []podKind{{"native sidecar", true, rolloutTimes()}, {"plain sidecar", false, rolloutTimes()}} {
		t.Run("B67 "+kind.name+": nothing fails while pods come and go", func(t *testing.T) {
			t.Parallel()
			runs, state := new(effects), testenv.Dir(t)
			if *rolloutReal {
				server := servers.Postgres(t)
				kind.times.drains += "\nnamespace: pod\nstore: " + server.URL(server.Database(t))
			}
			old := kind.start(t, state, runs)
			s := new(service)
			s.set(old)
			stop := s.load(t, *rolloutRate)
			for range *rollouts {
				next := kind.start(t, state, runs)
				s.set(old, next)
				time.Sleep(kind.times.lag / 4) // both are sent to
				var learnt sync.WaitGroup
				learnt.Go(func() {
					time.Sleep(kind.times.lag)
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
			t.Logf("%d rollouts, %d events", *rollouts, sent)
		})
	}
}
