package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/lock"
)

var (
	scale       = flag.Int("bench.scale", 500, "how many done claims a store holds")
	scaleSample = flag.Int("bench.scale.sample", 20, "how many claims are timed")
	scaleStores = flag.String("bench.scale.stores", "PostgreSQL,MariaDB,Redis,SQLite", "which stores")
	scaleOut    = flag.String("bench.scale.out", "", "where the table is written; empty: to the test's log")
)

// freshPerSecond is how many events come while a store is purged.
const freshPerSecond = 300

// TestScale fills stores and says what that costs. Half of the claims are past
// their retention, where the store leaves it to oncegate to remove them.
func TestScale(t *testing.T) {
	var text strings.Builder
	fmt.Fprintf(&text, "%d done claims, %d timed; %d CPUs, %s. Servers and client share the machine.\n\n"+
		"| store | bytes a claim | claim p50, p99, empty | p50, p99, full | full to empty, p50, p99 | filled, claims/s | purged, claims/s | p99 beside the purge to before | size after churn to before |\n"+
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", *scale, *scaleSample, runtime.NumCPU(), runtime.Version())
	for _, s := range scaled() {
		if !strings.Contains(","+*scaleStores+",", ","+s.name+",") {
			continue
		}
		t.Run(s.name, func(t *testing.T) { text.WriteString(measure(t, s)) })
	}
	if *scaleOut == "" {
		t.Log("\n" + text.String())
		return
	}
	if err := os.WriteFile(*scaleOut, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// measure fills a store and returns its line of the table.
func measure(t *testing.T, s scaledStore) string {
	empty, full := s.open(t), s.open(t)
	timed(t, empty, "first", 10) // makes tables and connections
	timed(t, full, "first", 10)
	before := full.size(t)
	start := time.Now()
	fill(t, full, "fill", *scale, !s.expires)
	filled := float64(*scale) / time.Since(start).Seconds()
	holds := full.size(t)
	s.rest(t, full)

	// In turns, so that what else the machine does meets both alike.
	var inEmpty, inFull []time.Duration
	for i := range 10 {
		inEmpty = append(inEmpty, timed(t, empty, fmt.Sprint("empty", i), *scaleSample/10)...)
		inFull = append(inFull, timed(t, full, fmt.Sprint("full", i), *scaleSample/10)...)
	}
	line := fmt.Sprintf("| %s | %d | %s | %s | %s, %s | %.0f |", s.name, (holds-before)/int64(*scale), both(inEmpty), both(inFull),
		ratio(inFull, inEmpty, 0.5), ratio(inFull, inEmpty, 0.99), filled)
	if s.expires {
		return line + " by itself | | |\n"
	}

	calm, _ := beside(t, full, "calm", func(context.Context) (int, error) {
		time.Sleep(time.Duration(*scaleSample) * 10 * time.Millisecond)
		return 0, nil
	})
	start = time.Now()
	busy, removed := beside(t, full, "busy", func(ctx context.Context) (int, error) { return purge(ctx, full.purger(t)) })
	purged := float64(removed) / time.Since(start).Seconds()

	// A day in fast motion: as many come as go, ten times a tenth.
	begun := full.size(t)
	for i := range 10 {
		fill(t, full, fmt.Sprint("churn", i), max(*scale/10, 1), true)
		s.rest(t, full)
		if _, err := purge(t.Context(), full.purger(t)); err != nil {
			t.Fatal(err)
		}
	}
	return line + fmt.Sprintf(" %.0f | %s | %.2f |\n", purged, ratio(busy, calm, 0.99), float64(full.size(t))/float64(begun))
}

// claim is a done claim as a small webhook's is.
func claim(text string) lock.Record {
	return lock.Record{
		Key: lock.KeyOf("bench", "stripe", text), Text: text, State: lock.StateRunning, Attempt: 1, Deliveries: 1,
		Token: lock.NewToken(), Version: lock.NewVersion(), Lease: 30 * time.Second, RunsUntil: 150 * time.Second, Payload: lock.Digest{1},
	}
}

func settled(r lock.Record, retain time.Duration) lock.Record {
	r.Version, r.State, r.Reason = lock.NewVersion(), lock.StateDone, lock.ReasonAnswered
	r.Lease, r.RunsUntil, r.Retain = 0, 0, retain
	r.AnswerStatus, r.AnswerBody = 200, []byte(`{"received":true}`)
	r.AnswerHeader = []byte("\x01\x00Content-Type\x00application/json\x00Cache-Control\x00no-cache, private\x00")
	return r
}

// timed begins and settles n events, one at a time, and says how long each took.
func timed(t *testing.T, s lock.Store, name string, n int) (took []time.Duration) {
	t.Helper()
	for i := range n {
		start := time.Now()
		once(t, s, fmt.Sprintf("evt_1NxV%s%016d", name, i))
		took = append(took, time.Since(start))
	}
	return took
}

func once(t *testing.T, s lock.Store, text string) {
	begin := lock.Change{Next: claim(text), Seen: true}
	for _, c := range []lock.Change{begin, {Expect: begin.Next.Version, Next: settled(begin.Next, 35*24*time.Hour)}} {
		results, err := s.Apply(t.Context(), []lock.Change{c})
		if err != nil || !results[0].Applied(c) {
			t.Errorf("claim: %v", err)
		}
	}
}

// fill makes n done claims, half of which are past retention at once, if that is
// asked for.
func fill(t *testing.T, s lock.Store, name string, n int, expired bool) {
	t.Helper()
	const batch, workers = 250, 4
	starts := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for from := range starts {
				var changes []lock.Change
				for i := from; i < min(from+batch, n); i++ {
					retain := 35 * 24 * time.Hour
					if expired && i%2 == 0 {
						retain = time.Microsecond
					}
					changes = append(changes, lock.Change{Next: settled(claim(fmt.Sprintf("evt_1NxV%s%016d", name, i)), retain)})
				}
				if _, err := s.Apply(t.Context(), changes); err != nil {
					t.Errorf("fill: %v", err)
				}
			}
		})
	}
	for from := 0; from < n; from += batch {
		starts <- from
	}
	close(starts)
	wg.Wait()
}

// purge removes all that is past retention, as oncegate does in the background.
func purge(ctx context.Context, s lock.Catalog) (removed int, err error) {
	for {
		n, err := s.Purge(ctx, "bench", 500)
		removed += n
		if err != nil || n < 500 {
			return removed, err
		}
	}
}

// beside times fresh events that come at a steady rate while work goes on.
func beside(t *testing.T, s lock.Store, name string, work func(context.Context) (int, error)) (took []time.Duration, n int) {
	t.Helper()
	over := make(chan error, 1)
	go func() {
		var err error
		n, err = work(t.Context())
		over <- err
	}()
	tick := time.NewTicker(time.Second / freshPerSecond)
	defer tick.Stop()
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			wg.Go(func() {
				start := time.Now()
				once(t, s, fmt.Sprintf("evt_1NxV%s%016d", name, i))
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(start))
			})
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			return took, n
		}
	}
}

func both(d []time.Duration) string {
	return fmt.Sprintf("%v, %v", quantile(d, 0.5).Round(10*time.Microsecond), quantile(d, 0.99).Round(10*time.Microsecond))
}

func ratio(a, b []time.Duration, q float64) string {
	if len(a) == 0 || len(b) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(quantile(a, q))/float64(quantile(b, q)))
}
