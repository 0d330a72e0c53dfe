package main

import (
	"testing"

	"oncegate/internal/config"
)

// B67 What `check` reckons for the end of a process is what stopping it can take.
func TestAfterDrain(t *testing.T) {
	if took := lastAnswers + lastOperators + lastEvidence + lastTelemetry + lastProbes + lastLog; took > config.AfterDrain {
		t.Errorf("%s after the drain, and check reckons with %s", took, config.AfterDrain)
	}
}
