package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/lock"
)

func TestRecordCounts(t *testing.T) {
	tel, _ := start(t)
	ctx := context.Background()
	has(t, scrape(t, tel),
		// Before anything has happened, so that an alert sees the first increase.
		`oncegate_deliveries_total{result="unknown",route="github"} 0`,
		`oncegate_possible_second_runs_total{scope="code"} 0`,
		`oncegate_store_errors_total 0`,
		`oncegate_build_info{version="1.2.3"} 1`,
	)
	tel.Record(ctx, Outcome{Route: "stripe", Result: ResultFresh, Claim: time.Millisecond, Upstream: 200 * time.Millisecond, Settle: time.Millisecond})
	tel.Record(ctx, Outcome{Route: "stripe", Result: ResultReplay, Duplicate: true, Age: 2 * time.Hour, Differs: true, Claim: time.Millisecond})
	tel.Record(ctx, Outcome{Route: "stripe", Result: ResultWaited, Duplicate: true, Waited: 300 * time.Millisecond, SecondRun: true})
	has(t, scrape(t, tel),
		`oncegate_deliveries_total{result="fresh",route="stripe"} 1`,
		`oncegate_deliveries_total{result="replay",route="stripe"} 1`,
		`oncegate_deliveries_total{result="waited",route="stripe"} 1`,
		`oncegate_duplicates_total{route="stripe"} 2`,
		`oncegate_differing_payloads_total{route="stripe"} 1`,
		`oncegate_duplicate_age_seconds_bucket{route="stripe",le="3600"} 0`,
		`oncegate_duplicate_age_seconds_bucket{route="stripe",le="21600"} 1`,
		`oncegate_duplicate_age_seconds_count{route="stripe"} 1`,
		`oncegate_claim_duration_seconds_count{route="stripe"} 2`,
		`oncegate_upstream_duration_seconds_sum{route="stripe"} 0.2`,
		`oncegate_settle_duration_seconds_count{route="stripe"} 1`,
		`oncegate_wait_duration_seconds_count{result="waited",route="stripe"} 1`,
		`oncegate_possible_second_runs_total{scope="stripe"} 0`, // the claim's event counts it
	)
}

func TestClaimEvents(t *testing.T) {
	for kind, want := range map[lock.EventKind]string{
		lock.EventRenewed:       `oncegate_renewals_total{scope="code"} 1`,
		lock.EventFenced:        `oncegate_fenced_writes_total{scope="code"} 1`,
		lock.EventLapsed:        `oncegate_lapses_total{scope="code"} 1`,
		lock.EventSecondRun:     `oncegate_possible_second_runs_total{scope="code"} 1`,
		lock.EventLate:          `oncegate_late_answers_total{scope="code"} 1`,
		lock.EventOwed:          `oncegate_owed_total 1`,
		lock.EventPaid:          `oncegate_paid_total 1`,
		lock.EventMemoryHit:     `oncegate_memory_hits_total 1`,
		lock.EventSwept:         `oncegate_swept_total 7`,
		lock.EventPurged:        `oncegate_purged_total 7`,
		lock.EventBackgroundErr: `oncegate_background_errors_total 1`,
		lock.EventJournalError:  `oncegate_journal_errors_total 7`,
		lock.EventWitness:       `oncegate_witness_answers_total{said="nothing",scope="code"} 1`,
		lock.EventStoreError:    `oncegate_store_errors_total 1`,
		lock.EventWriteTrip:     `oncegate_store_trip_records_sum{op="write"} 7`,
		lock.EventReadTrip:      `oncegate_store_trip_duration_seconds_sum{op="read"} 0.5`,
	} {
		tel, _ := start(t)
		tel.Claim(lock.Event{Kind: kind, Scope: "code", Took: 500 * time.Millisecond, N: 7})
		has(t, scrape(t, tel), want)
	}
}

func TestGauges(t *testing.T) {
	tel, _ := start(t)
	up := true
	figures := &lock.Figures{
		Claims:     map[lock.ScopeState]int{{Scope: "stripe", State: lock.StateUnknown}: 5, {Scope: "gone", State: lock.StateUnknown}: 9, {Scope: "renamed", State: lock.StateUnknown}: 1},
		Unfinished: map[string]int{"stripe": 2, "gone": 1},
		Unknown:    map[string]time.Duration{"stripe": 90 * time.Second},
	}
	if err := tel.Observe(Gauges{
		InHand:       func() int64 { return 3 },
		InHandBytes:  func() int64 { return 4096 },
		Owed:         func() int64 { return 2 },
		StoreUp:      func() bool { return up },
		StoreFit:     func() bool { return !up },
		StoreUnknown: func() int64 { return 4 },
		Figures:      func() *lock.Figures { return figures },
		Dropped:      func() int64 { return 17 },

		EvidencePurged: func() time.Time { return time.Unix(1_800_000_000, 0) },
	}); err != nil {
		t.Fatal(err)
	}
	lines := scrape(t, tel)
	has(t, lines,
		"oncegate_in_hand 3", "oncegate_in_hand_size_bytes 4096", "oncegate_journal_depth 2", "oncegate_store_up 1", "oncegate_store_fit 0", "oncegate_store_unknown_checks 4",
		`oncegate_claims{scope="stripe",state="unknown"} 5`, `oncegate_claims{scope="code",state="unknown"} 0`, `oncegate_claims{scope="_OTHER",state="unknown"} 10`,
		`oncegate_unfinished_claims{scope="stripe"} 2`, `oncegate_unfinished_claims{scope="code"} 0`,
		`oncegate_unknown_oldest_seconds{scope="stripe"} 90`, "oncegate_evidence_dropped_total 17",
	)
	if strings.Contains(strings.Join(lines, "\n"), "gone") {
		t.Error("a scope that is not configured has a series")
	}
	t.Run("what only a survey knows is said when there was one", func(t *testing.T) {
		for _, early := range []string{`state="done"`, "past_retention"} {
			if strings.Contains(strings.Join(lines, "\n"), early) {
				t.Errorf("%s is said before anybody has counted", early)
			}
		}
		figures.Surveyed, figures.Over = true, 12
		has(t, scrape(t, tel), `oncegate_claims{scope="code",state="done"} 0`, "oncegate_records_past_retention 12")
	})
	t.Run("B59 when a purge last succeeded", func(t *testing.T) {
		const name = "oncegate_purge_last_success_timestamp_seconds"
		has(t, lines, "oncegate_evidence_purge_last_success_timestamp_seconds 1.8e+09")
		tel.Claim(lock.Event{Kind: lock.EventPurged, N: 500, Err: errors.New("cut off")})
		if strings.Contains(strings.Join(scrape(t, tel), "\n"), name) {
			t.Error("a purge that failed counts as a success")
		}
		before := time.Now()
		tel.Claim(lock.Event{Kind: lock.EventPurged})
		var at float64
		for _, line := range scrape(t, tel) {
			if _, err := fmt.Sscanf(line, name+" %g", &at); err == nil {
				break
			}
		}
		if at < float64(before.Unix()) || at > float64(time.Now().Unix()+1) {
			t.Errorf("it succeeded at %v", at)
		}
	})
	t.Run("who does not count says nothing", func(t *testing.T) {
		figures = nil
		if strings.Contains(strings.Join(scrape(t, tel), "\n"), "oncegate_claims{") {
			t.Error("figures that another replica takes are reported here too")
		}
	})
	up = false
	t.Run("B69 a store outage is a metric", func(t *testing.T) {
		has(t, scrape(t, tel), "oncegate_store_up 0")
	})
}

// The names that dashboards and alerts are built on.
func TestMetricNames(t *testing.T) {
	tel, _ := start(t)
	if err := tel.Observe(Gauges{
		InHand: func() int64 { return 0 }, InHandBytes: func() int64 { return 0 }, Owed: func() int64 { return 0 },
		StoreUp: func() bool { return true }, StoreFit: func() bool { return true }, StoreUnknown: func() int64 { return 0 },
		Figures: func() *lock.Figures { return &lock.Figures{Surveyed: true} }, Dropped: func() int64 { return 0 },
		EvidencePurged: time.Now,
	}); err != nil {
		t.Fatal(err)
	}
	hostile(tel, rand.New(rand.NewPCG(1, 1)))
	number := regexp.MustCompile(`"[^"]*"`)
	seen := map[string]bool{}
	for _, line := range scrape(t, tel) {
		name, _, _ := strings.Cut(number.ReplaceAllString(line, ""), " ")
		if strings.Contains(name, "_bucket{") || strings.Contains(name, "_sum") {
			continue
		}
		seen[name] = true
	}
	want := strings.Fields(`
oncegate_background_errors_total
oncegate_batch_repeats_total{route=}
oncegate_build_info{version=}
oncegate_claim_duration_seconds_count{route=}
oncegate_claims{scope=,state=}
oncegate_config_reloads_total{result=}
oncegate_deliveries_total{result=,route=}
oncegate_differing_payloads_total{route=}
oncegate_duplicate_age_seconds_count{route=}
oncegate_duplicates_total{route=}
oncegate_evidence_dropped_total
oncegate_evidence_purge_last_success_timestamp_seconds
oncegate_fenced_writes_total{scope=}
oncegate_in_hand
oncegate_in_hand_size_bytes
oncegate_journal_depth
oncegate_journal_errors_total
oncegate_lapses_total{scope=}
oncegate_late_answers_total{scope=}
oncegate_memory_hits_total
oncegate_observed_refusals_total{result=,route=}
oncegate_operator_decisions_total{verb=}
oncegate_owed_total
oncegate_paid_total
oncegate_possible_second_runs_total{scope=}
oncegate_purge_last_success_timestamp_seconds
oncegate_purged_total
oncegate_records_past_retention
oncegate_renewals_total{scope=}
oncegate_settle_duration_seconds_count{route=}
oncegate_slow_answers_total{route=}
oncegate_store_errors_total
oncegate_store_fit
oncegate_store_trip_duration_seconds_count{op=}
oncegate_store_trip_records_count{op=}
oncegate_store_unknown_checks
oncegate_store_up
oncegate_swept_total
oncegate_unfinished_claims{scope=}
oncegate_unknown_oldest_seconds{scope=}
oncegate_upstream_duration_seconds_count{route=}
oncegate_wait_duration_seconds_count{result=,route=}
oncegate_witness_answers_total{said=,scope=}
`)
	var got []string
	for name := range seen {
		if strings.HasPrefix(name, "oncegate_") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// hostile records what a stranger could send, and what a faulty caller could pass.
func hostile(tel *Telemetry, random *rand.Rand) {
	ctx := context.Background()
	junk := func() string { return fmt.Sprintf("x%d\xff\n\"%d", random.Uint64(), random.Uint64()) }
	tel.Record(ctx, Outcome{
		Route: junk(), Scope: junk(), Key: junk(), Provider: junk(), Result: Result(junk()), Error: ErrorClass(junk()), Status: int(random.Int32()),
		Detail: junk(), Duplicate: true, Differs: true, Age: time.Second, Waited: time.Second, Claim: time.Second, Upstream: time.Second, Settle: time.Second,
	})
	for kind := range lock.EventKind(20) {
		tel.Claim(lock.Event{Kind: kind, Scope: junk(), N: random.IntN(1000)})
	}
	for _, route := range []string{"", "stripe", junk()} {
		r := &http.Request{Method: junk(), Header: http.Header{"Traceparent": {junk()}, "Host": {junk()}}, Proto: junk(), Host: junk()}
		sctx, server := tel.StartServer(ctx, r, route)
		_, client := tel.StartClient(sctx, route, junk(), random.IntN(1000))
		client.End(sctx, 600+random.IntN(400), ErrorClass(junk()))
		server.End(sctx, -random.IntN(400), ErrorClass(junk()))
	}
}

func TestSeriesDoNotGrow(t *testing.T) {
	tel, _ := start(t)
	random := rand.New(rand.NewPCG(2, 2))
	hostile(tel, random)
	before := len(scrape(t, tel))
	for range 1000 {
		hostile(tel, random)
	}
	if after := len(scrape(t, tel)); after != before {
		t.Errorf("%d lines became %d", before, after)
	}
	has(t, scrape(t, tel), `oncegate_deliveries_total{result="_OTHER",route="_OTHER"} 1001`)
}

func TestRoutesCanBeReplaced(t *testing.T) {
	tel, _ := start(t)
	ctx := context.Background()
	tel.Record(ctx, Outcome{Route: "stripe", Result: ResultFresh})
	tel.SetRoutes(Upstream{}, []Route{{Name: "paddle", Path: "/paddle"}})
	tel.Record(ctx, Outcome{Route: "stripe", Result: ResultFresh})
	tel.Record(ctx, Outcome{Route: "paddle", Result: ResultFresh})
	has(t, scrape(t, tel),
		`oncegate_deliveries_total{result="fresh",route="stripe"} 1`,
		`oncegate_deliveries_total{result="fresh",route="_OTHER"} 1`,
		`oncegate_deliveries_total{result="fresh",route="paddle"} 1`,
	)
}
