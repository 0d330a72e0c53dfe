package proxy

import (
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// TestKeptOfABatch: each event of a batch keeps the whole request, unless all of
// them together would keep more than 64 MiB.
func TestKeptOfABatch(t *testing.T) {
	r := &route{Route: &config.Route{Scope: "r", Wait: time.Second}}
	for name, c := range map[string]struct {
		events, size int
		kept         bool
	}{
		"one event, however large":  {1, 65 << 20, true},
		"a batch of 64 MiB in all":  {64, 1 << 20, true},
		"and of one byte too much":  {64, 1<<20 + 1, false},
		"10 000 events in a MiB":    {10_000, 1 << 20, false},
		"10 000 events in a little": {10_000, 6_000, true},
	} {
		t.Run("B13 "+name, func(t *testing.T) {
			d := &delivery.Delivery{Body: make([]byte, c.size), Arrived: time.Now()}
			ask := r.question(d, keyextract.Values{Keys: make([]string, c.events)})
			if kept := !ask.Unkept; kept != c.kept {
				t.Errorf("kept: %v, want %v", kept, c.kept)
			}
		})
	}
}
