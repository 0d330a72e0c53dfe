package main

import (
	"maps"
	"testing"
	"time"

	"oncegate/internal/config"
)

// A route that is switched off keeps the figures of its scope, so that no alert of
// what is unknown there ends by it.
func TestHorizons(t *testing.T) {
	const hour = time.Hour
	got := horizons(&config.Config{Routes: []*config.Route{
		{Name: "stripe", Scope: "stripe", Mode: config.ModeOff, RetriesFor: 72 * hour},
		{Name: "github", Scope: "code", Mode: config.ModeObserve, RetriesFor: hour},
		{Name: "gitlab", Scope: "code", Mode: config.ModeEnforce, RetriesFor: 2 * hour},
	}})
	if want := map[string]time.Duration{"stripe": 72 * hour, "code": 2 * hour}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
