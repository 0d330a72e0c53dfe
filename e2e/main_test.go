package e2e

import (
	"os"
	"testing"

	"oncegate/e2e/harness"
)

var binary harness.Binary

func TestMain(m *testing.M) { os.Exit(binary.Run(m)) }
