package e2e

import (
	"os"
	"testing"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

var (
	binary  harness.Binary
	servers testenv.Set
)

func TestMain(m *testing.M) { os.Exit(binary.Run(m, servers.Run)) }
