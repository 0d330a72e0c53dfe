package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
)

const (
	namespace = "bench"
	scope     = "stripe"
	retention = 35 * 24 * time.Hour
)

var policy = &lock.Policy{Lease: 30 * time.Second, AppLimit: 120 * time.Second, Retention: retention}

// laravel is what a small handler of Laravel's answers.
var laravel = lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: &lock.Answer{
	Status: 200, Body: []byte(`{"received":true}`), Header: []lock.Line{
		{Name: "Content-Type", Value: "application/json"},
		{Name: "Cache-Control", Value: "no-cache, private"},
		{Name: "Date", Value: "Mon, 02 Jan 2006 15:04:05 GMT"},
	},
}}

// eventText is an event key as long as Stripe's are.
func eventText(name string, n int) string {
	return fmt.Sprintf("evt_1NxV%s%014d", (name + "______")[:6], n)
}

// once has one event take effect, as the proxy has it.
func once(g *lock.Gate, text string) error {
	d := g.Begin(context.Background(), &lock.Ask{
		Items: []lock.Item{{Key: lock.KeyOf(namespace, scope, text), Text: text}}, Policy: policy, Payload: sha256.Sum256([]byte(text)),
	})
	if d.Verdict != lock.Run {
		return fmt.Errorf("%s: verdict %d: %w", text, d.Verdict, d.Err)
	}
	if err := d.Attempt.Start(); err != nil {
		return err
	}
	if r := d.Attempt.Settle(laravel); r != lock.SettleStands {
		return fmt.Errorf("%s: settled %d", text, r)
	}
	return nil
}

// timed has n events take effect, one at a time, and says how long each took.
func timed(t *testing.T, o *opened, name string, n int) (took []time.Duration) {
	t.Helper()
	for i := range n {
		start := time.Now()
		if err := once(o.gate, eventText(name, i)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return took
}

// churn lets a day of the retention pass in fast motion: as many events come as
// are removed, in ten steps. It says how much larger the store is then.
func churn(t *testing.T, o *opened, claims int) float64 {
	before := o.size(t)
	for step := range 10 {
		n := max(claims/35/10, 1)
		var next atomic.Int64
		var wg sync.WaitGroup
		for range 32 { // so that many share a commit
			wg.Go(func() {
				for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
					if err := once(o.gate, eventText(fmt.Sprint("churn", step), i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if o.expires {
			continue
		}
		for left := n; left > 0; {
			p, err := o.catalog.Purge(t.Context(), namespace, min(left, 500))
			if err != nil || !p.More {
				t.Fatalf("purge: %+v, %v", p, err)
			}
			left -= p.Removed
		}
	}
	return float64(o.size(t)) / float64(before)
}

// purgeBeside has events come at a steady rate while oncegate purges in the
// background, and while it does not, in turns.
func purgeBeside(t *testing.T, o *opened, expired int, r *result) {
	work := o.purge(t)
	for start := time.Now(); time.Since(start) < 2**scaleLimit && work.removed() < expired; {
		r.calm = append(r.calm, steady(t, o.gate, segment())...)
		before, began := work.removed(), time.Now()
		work.resume()
		r.busy = append(r.busy, steady(t, o.gate, segment())...)
		work.pause()
		r.purged += time.Since(began)
		r.removed += work.removed() - before
	}
	if r.removed == 0 {
		t.Error("nothing was removed")
	}
}

// segment is how long a turn is.
func segment() time.Duration { return min(10*time.Second, *scaleLimit/4) }

var arrivals atomic.Int64

// steady has events come at a steady rate, whether those before are done or not,
// and says how long each took.
func steady(t *testing.T, g *lock.Gate, d time.Duration) (took []time.Duration) {
	t.Helper()
	tick := time.NewTicker(time.Second / freshPerSecond)
	defer tick.Stop()
	var mu sync.Mutex // guards took
	var wg sync.WaitGroup
	for over := time.After(d); ; {
		select {
		case <-tick.C:
			wg.Go(func() {
				text := eventText("steady", int(arrivals.Add(1)))
				start := time.Now()
				err := once(g, text)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(start))
				if err != nil {
					t.Error(err)
				}
			})
		case <-over:
			wg.Wait()
			return took
		}
	}
}

// A removal is what removes claims while it is let.
type removal struct {
	resume, pause func()
	removed       func() int
}

// background is oncegate's own, on a store that does not expire claims by itself.
func background(t *testing.T, o *opened) removal {
	var removed atomic.Int64
	stop, stopped := func() {}, make(chan error)
	return removal{
		resume: func() {
			var ctx context.Context
			ctx, stop = context.WithCancel(t.Context())
			go func() {
				stopped <- lock.PurgeAll(ctx, o.catalog, namespace, 500, func(n int, _ error) { removed.Add(int64(n)) })
			}()
		},
		pause: func() {
			stop()
			if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		},
		removed: func() int { return int(removed.Load()) },
	}
}
