package bench

import (
	"bufio"
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the evidence file is looked into
)

var stormOf = flag.Int("bench.storm", 200_000, "how many duplicates of one event come")

// The most that oncegate's process may take, by the kernel's count, and evidence on
// disk: a storm of a million must not take more than one of a thousand.
const (
	mostMemory   = 300 << 20
	mostEvidence = 8 << 20
)

// TestStorm sends duplicates of one event, as many as wanted: each is counted, in the
// metrics and in evidence, to the digit; and neither memory nor store grows by them.
// Then the evidence's file is locked while deliveries come that share no row, since
// each is another sender's: what memory does not hold is counted as dropped.
func TestStorm(t *testing.T) {
	g := serveGate(t, build(t), start(t, "app"), "sqlite", "trusted_proxies: [127.0.0.1/32]")
	prime(t, g.addr, "evt_storm")
	sent := g.storm(t, *stormOf, "replay", func(b []byte, _ int64) []byte { return event(b, "evt_storm") })
	if n := g.metric(t, `oncegate_duplicates_total{route="stripe"}`); n != sent {
		t.Errorf("%d duplicates are counted, of %d", n, sent)
	}
	rows := g.evidence(t, 1+sent)
	if dropped := g.metric(t, "oncegate_evidence_dropped_total"); dropped != 0 || rows > 100 {
		t.Errorf("%d rows, %d dropped", rows, dropped)
	}
	memory, disk := g.memory(t), g.disk(t)
	t.Logf("%d duplicates: %d rows of evidence, %d MiB of memory at most, %d KiB on disk", sent, rows, memory>>20, disk>>10)
	if memory > mostMemory || disk > mostEvidence {
		t.Errorf("%d bytes of memory, %d on disk", memory, disk)
	}

	unlock := g.lockEvidence(t)
	unlike := g.storm(t, max(*stormOf/5, 40_000), "replay", func(b []byte, n int64) []byte {
		from := fmt.Sprintf("\r\nX-Forwarded-For: 10.%d.%d.%d\r\nContent-Length: ", n>>16&255, n>>8&255, n&255)
		return bytes.Replace(event(b, "evt_storm"), []byte("\r\nContent-Length: "), []byte(from), 1)
	})
	if dropped := g.metric(t, "oncegate_evidence_dropped_total"); dropped < unlike/2 {
		t.Errorf("%d of %d that share nothing are dropped, while nothing can be written", dropped, unlike)
	}
	if memory := g.memory(t); memory > mostMemory {
		t.Errorf("%d bytes of memory", memory)
	}
	unlock()
	dropped := g.metric(t, "oncegate_evidence_dropped_total")
	rows = g.evidence(t, 1+sent+unlike-dropped)
	if again := g.metric(t, "oncegate_evidence_dropped_total"); again != dropped {
		t.Errorf("%d more were dropped when all could be written again", again-dropped)
	}
	t.Logf("%d from as many senders, unwritten for their time: %d dropped, the others in %d rows; %d MiB of memory at most", unlike, dropped, rows, g.memory(t)>>20)
}

// storm sends n requests over some connections, many at a time on each.
func (g *gate) storm(t *testing.T, n int, result string, next func(b []byte, n int64) []byte) int {
	t.Helper()
	const conns, atOnce = 8, 32
	var counter, sent atomic.Int64
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			conn, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			answers := bufio.NewReader(conn)
			for int(sent.Load()) < n {
				var b, one []byte
				for range atOnce {
					one = next(one[:0], counter.Add(1))
					b = append(b, one...)
				}
				if _, err := conn.Write(b); err != nil {
					t.Error(err)
					return
				}
				for range atOnce {
					resp, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					if got := resp.Header.Get("Oncegate-Result"); resp.StatusCode != 200 || got != result {
						t.Errorf("answered %d, %q", resp.StatusCode, got)
						return
					}
					sent.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return int(sent.Load())
}

// metric is one series' value.
func (g *gate) metric(t *testing.T, series string) int {
	t.Helper()
	resp, err := http.Get("http://" + g.health + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatalf("there is no %s", series)
	return 0
}

// evidenceFile is where evidence lies.
func (g *gate) evidenceFile() string { return filepath.Join(g.dir, "oncegate-evidence.db") }

func (g *gate) openEvidence(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+g.evidenceFile()+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// evidence waits until rows stand for so many deliveries, and no more, and returns
// how many rows.
func (g *gate) evidence(t *testing.T, deliveries int) (rows int) {
	t.Helper()
	db := g.openEvidence(t)
	defer db.Close()
	stands := 0
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		if err := db.QueryRow("SELECT count(*), coalesce(sum(number), 0) FROM oncegate_evidence").Scan(&rows, &stands); err != nil {
			t.Fatal(err)
		}
		if stands == deliveries {
			return rows
		}
	}
	t.Fatalf("%d rows stand for %d deliveries, want %d", rows, stands, deliveries)
	return 0
}

// lockEvidence keeps everybody else from writing evidence, until it is undone.
func (g *gate) lockEvidence(t *testing.T) (unlock func()) {
	t.Helper()
	db := g.openEvidence(t)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := db.Exec("ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// memory is the most that the process has had resident, in bytes.
func (g *gate) memory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmHWM: %s", status)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// disk is how many bytes claims and evidence take.
func (g *gate) disk(t *testing.T) (sum int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(g.dir, "oncegate*.db*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil { // a WAL may be gone
			sum += int(info.Size())
		}
	}
	return sum
}
