package bench

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

var (
	servers testenv.Set
	rounds  = flag.Int("bench.rounds", 1, "how often each cell is measured")
	each    = flag.Duration("bench.each", 50*time.Millisecond, "for how long each time")
	out     = flag.String("bench.out", "", "where the table is written; empty: to the test's log")
)

// A cell is one line of the table.
type cell struct {
	name string
	load load
}

func TestCompare(t *testing.T) {
	app := start(t, "app")
	binary := build(t)
	cells := []cell{
		{"the app itself", load{addr: app, next: pages}},
		{"bare ReverseProxy", load{addr: start(t, "bare", upstream+"="+app), next: pages}},
		{"nginx", load{addr: nginx(t, app), next: pages}},
	}
	pg := servers.Postgres(t)
	database := pg.Database(t)
	for i, store := range stores(t, pg.URL(database)) {
		at := oncegate(t, binary, app, store.config)
		if i == 0 {
			cells = append(cells, cell{"oncegate, pass-through", load{addr: at, next: pages}})
		}
		once := "evt_replayed"
		cells = append(cells,
			cell{"oncegate, replay, " + store.name, load{addr: at, result: "replay", next: func(b []byte, _ int64) []byte {
				return event(b, once)
			}}},
			cell{"oncegate, fresh, " + store.name, load{addr: at, result: "fresh", next: func(b []byte, n int64) []byte {
				return event(b, "evt_"+strconv.FormatInt(n, 10))
			}}})
		prime(t, at, once)
	}

	var counter atomic.Int64
	var text strings.Builder
	fmt.Fprintf(&text, "%d CPUs, %s, %d rounds of %v a cell. Client and servers share the machine.\n", runtime.NumCPU(), runtime.Version(), *rounds, *each)
	for _, conns := range []int{1, 32} {
		samples := make([]sample, len(cells))
		for range *rounds {
			for i, c := range cells {
				s, err := c.load.run(conns, *each, &counter)
				if err != nil {
					t.Fatalf("%s, %d connections: %v", c.name, conns, err)
				}
				samples[i].took += s.took
				samples[i].delays = append(samples[i].delays, s.delays...)
			}
		}
		table(&text, conns, cells, samples)
		fmt.Fprintf(&text, "\nPostgreSQL by itself, the begin and the settle of an event as two statements, row by row (pgbench): %.0f events/s.\n", pgbench(t, pg, database, conns))
	}
	if *out == "" {
		t.Log("\n" + text.String())
		return
	}
	if err := os.WriteFile(*out, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// prime runs an event once, so that the next deliveries replay.
func prime(t *testing.T, at, id string) {
	l := load{addr: at, result: "fresh", next: func(b []byte, _ int64) []byte { return event(b, id) }}
	if _, err := l.connection(time.Now(), new(atomic.Int64)); err != nil {
		t.Fatal(err)
	}
}

// table writes the samples as Markdown; ratios are to the bare proxy.
func table(w *strings.Builder, conns int, cells []cell, samples []sample) {
	rate := func(s sample) float64 { return float64(len(s.delays)) / s.took.Seconds() }
	base := rate(samples[1])
	fmt.Fprintf(w, "\n%d connections:\n\n| | requests/s | of bare | p50 | p99 |\n|---|---:|---:|---:|---:|\n", conns)
	for i, c := range cells {
		s := samples[i]
		fmt.Fprintf(w, "| %s | %.0f | %.2f | %v | %v |\n", c.name, rate(s), rate(s)/base,
			quantile(s.delays, 0.5).Round(time.Microsecond), quantile(s.delays, 0.99).Round(time.Microsecond))
	}
}

type storeUnderTest struct{ name, config string }

// stores returns the stores that are compared, each on a server of its own.
func stores(t *testing.T, postgres string) []storeUnderTest {
	maria := servers.MariaDB(t)
	return []storeUnderTest{
		{"SQLite", "sqlite"},
		{"PostgreSQL", postgres},
		{"MariaDB", maria.URL(maria.Database(t))},
		{"Redis", testenv.Redis(t).URL},
	}
}
