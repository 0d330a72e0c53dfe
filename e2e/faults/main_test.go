package faults_test

import (
	"fmt"
	"os"
	"testing"

	"oncegate/e2e/faults"
	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

var (
	binary  harness.Binary
	servers testenv.Set
)

func TestMain(m *testing.M) {
	if is, err := faults.RunApp(); is {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
	os.Exit(binary.Run(m, servers.Run))
}
