package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestLogLine(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Outcome
		want map[string]any
	}{
		{
			"everything",
			Outcome{
				Route: "stripe", Provider: "stripe", Scope: "money", Key: "evt_1", Result: ResultWaited, Status: 200,
				Attempt: 2, SecondRun: true, Duplicate: true, Age: 90 * time.Second, Differs: true, Stub: true,
				Waited: 1500 * time.Millisecond, Claim: 1234 * time.Microsecond, Upstream: 200 * time.Millisecond,
				Settle: 2 * time.Millisecond, Total: 2 * time.Second, Error: ErrorTimeout, Detail: "no answer",
			},
			map[string]any{
				"level": "WARN", "msg": "delivery", "route": "stripe", "provider": "stripe", "scope": "money", "key": "evt_1",
				"result": "waited", "status": 200.0, "attempt": 2.0, "second_run": true, "duplicate": true, "age_s": 90.0,
				"differs": true, "stub": true, "waited_us": 1500000.0, "claim_us": 1234.0, "upstream_us": 200000.0, "settle_us": 2000.0,
				"total_us": 2000000.0, "error": "timeout", "detail": "no answer",
			},
		},
		{
			"what does not apply is left out",
			Outcome{Route: "stripe", Scope: "stripe", Result: ResultUnverified, Status: 401},
			map[string]any{"level": "INFO", "msg": "delivery", "route": "stripe", "result": "unverified", "status": 401.0},
		},
		{
			"a result that asks for a person is a warning",
			Outcome{Route: "stripe", Result: ResultHeld, Status: 503},
			map[string]any{"level": "WARN", "msg": "delivery", "route": "stripe", "result": "held", "status": 503.0},
		},
		{
			"long texts are cut",
			Outcome{Route: "stripe", Result: ResultFresh, Key: strings.Repeat("k", 16<<10), Detail: strings.Repeat("é", 1000)},
			map[string]any{
				"level": "INFO", "msg": "delivery", "route": "stripe", "result": "fresh",
				"key": strings.Repeat("k", 224) + "... (16384 bytes)", "detail": strings.Repeat("é", 112) + "... (2000 bytes)",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tel, log := start(t)
			tel.Record(context.Background(), c.o)
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Fatalf("%d lines: %s", n, log.String())
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(log.String()), &got); err != nil {
				t.Fatal(err)
			}
			delete(got, "time")
			if !maps.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestNoLineCanBeForged(t *testing.T) {
	tel, log := start(t)
	tel.Record(context.Background(), Outcome{Route: "stripe", Result: ResultMalformed, Key: "a\n{\"msg\":\"delivery\"}", Detail: "\x00\xff\r\n"})
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %q", n, log.String())
	}
	if !json.Valid([]byte(log.String())) {
		t.Errorf("not JSON: %q", log.String())
	}
}

func TestParseLevel(t *testing.T) {
	for name, want := range map[string]slog.Level{"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := ParseLevel(name); err != nil || got != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "debug, info, warn or error") {
		t.Errorf("loud: %v", err)
	}
}

func BenchmarkRecord(b *testing.B) {
	fresh := Outcome{
		Route: "stripe", Provider: "stripe", Scope: "stripe", Key: "evt_1OcAzB2eZvKYlo2C0000", Result: ResultFresh, Status: 200,
		Attempt: 1, Claim: time.Millisecond, Upstream: 200 * time.Millisecond, Settle: time.Millisecond, Total: 203 * time.Millisecond,
	}
	replay := fresh
	replay.Result, replay.Duplicate, replay.Age, replay.Upstream, replay.Settle = ResultReplay, true, time.Minute, 0, 0
	for _, c := range []struct {
		name  string
		level slog.Level
		o     Outcome
	}{
		{"fresh/log=info", slog.LevelInfo, fresh},
		{"fresh/log=error", slog.LevelError, fresh},
		{"replay/log=info", slog.LevelInfo, replay},
		{"replay/log=error", slog.LevelError, replay},
	} {
		b.Run(c.name, func(b *testing.B) {
			tel, err := New(context.Background(), Options{Log: NewLogger(io.Discard, c.level)})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := tel.Shutdown(context.Background()); err != nil {
					b.Error(err)
				}
			})
			tel.SetRoutes(Upstream{"http", "127.0.0.1:8000"}, shop)
			b.ReportAllocs()
			for b.Loop() {
				tel.Record(context.Background(), c.o)
			}
		})
	}
}
