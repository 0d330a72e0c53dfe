package bench

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	scale       = flag.Int("bench.scale", 500, "how many done claims a store holds; SQLite at most five million")
	scaleSample = flag.Int("bench.scale.sample", 20, "how many claims are timed in a store alone")
	scaleLimit  = flag.Duration("bench.scale.limit", 2*time.Second, "for how long at most claims are made beside the purge, and as long beside none")
	scaleStores = flag.String("bench.scale.stores", "PostgreSQL,MariaDB,Redis,SQLite", "which stores")
	scaleOut    = flag.String("bench.scale.out", "", "where the tables are written; empty: to the test's log")
)

// freshPerSecond is how many events come while a store is purged.
const freshPerSecond = 300

// TestScale fills stores and says what that costs. The older half of the claims is
// past its retention.
func TestScale(t *testing.T) {
	var rooms, purges strings.Builder
	for _, s := range scaled() {
		if !strings.Contains(","+*scaleStores+",", ","+s.name+",") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := measure(t, s)
			fmt.Fprintf(&rooms, "| %s | %d | %d | %s | %s | %s | %v |\n", s.name, r.claims, r.bytes/int64(r.claims),
				both(r.empty), both(r.full), ratios(r.full, r.empty), r.filled.Round(time.Second))
			fmt.Fprintf(&purges, "| %s | %d | %.0f | %s | %s | %s | %.2f |\n", s.name, r.removed, float64(r.removed)/r.purged.Seconds(),
				both(r.calm), both(r.busy), ratios(r.busy, r.calm), r.churn)
		})
	}
	text := fmt.Sprintf("%d CPUs, %s. Servers and client share the machine. A claim is begun and settled.\n\n"+
		"| store | claims | bytes a claim | p50, p99, empty | p50, p99, full | full to empty | filled in |\n"+
		"|---|---:|---:|---:|---:|---:|---:|\n%s\n"+
		"| store | removed | a second | p50, p99, %d/s, calm | p50, p99 beside the purge | purge to calm | size after a day's churn to before |\n"+
		"|---|---:|---:|---:|---:|---:|---:|\n%s", runtime.NumCPU(), runtime.Version(), rooms.String(), freshPerSecond, purges.String())
	if *scaleOut == "" {
		t.Log("\n" + text)
		return
	}
	if err := os.WriteFile(*scaleOut, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A result is what was measured of one store.
type result struct {
	claims      int           // done ones, the timed left out
	bytes       int64         // that they take
	filled      time.Duration // how long it took to make them
	empty, full []time.Duration
	churn       float64 // size after to before
	removed     int     // in purged
	purged      time.Duration
	calm, busy  []time.Duration
}

// measure fills a store and says what came of it.
func measure(t *testing.T, s scaledStore) (r result) {
	r.claims = min(*scale, s.most)
	empty, full := s.open(t), s.open(t)
	timed(t, empty, "first", 10) // makes tables and connections
	timed(t, full, "first", 10)
	before := full.size(t)
	start := time.Now()
	full.fill(t, r.claims)
	r.filled = time.Since(start)
	r.bytes = full.size(t) - before
	full.wantFilled(t, r.claims)
	t.Logf("filled with %d claims in %v, %d bytes each", r.claims, r.filled, r.bytes/int64(r.claims))

	// In turns, so that what else the machine does meets both alike.
	for i := range 10 {
		r.empty = append(r.empty, timed(t, empty, fmt.Sprint("empty", i), *scaleSample/10)...)
		r.full = append(r.full, timed(t, full, fmt.Sprint("full", i), *scaleSample/10)...)
	}
	t.Logf("empty %s; full %s: %s", both(r.empty), both(r.full), ratios(r.full, r.empty))

	r.churn = churn(t, full, r.claims)
	t.Logf("size after a day's churn to before: %.2f", r.churn)
	purgeBeside(t, full, r.claims/2, &r)
	t.Logf("removed %d in %v; calm %s; beside %s: %s", r.removed, r.purged, both(r.calm), both(r.busy), ratios(r.busy, r.calm))
	return r
}

func both(d []time.Duration) string {
	if len(d) == 0 {
		return "-"
	}
	return fmt.Sprintf("%v, %v", quantile(d, 0.5).Round(10*time.Microsecond), quantile(d, 0.99).Round(10*time.Microsecond))
}

// ratios says how many times b's median and p99 a's are.
func ratios(a, b []time.Duration) string {
	if len(a) == 0 || len(b) == 0 {
		return "-"
	}
	ratio := func(q float64) float64 { return float64(quantile(a, q)) / float64(quantile(b, q)) }
	return fmt.Sprintf("%.2f, %.2f", ratio(0.5), ratio(0.99))
}
