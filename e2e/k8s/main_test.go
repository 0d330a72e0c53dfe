package k8s

import (
	"os"
	"testing"

	"oncegate/e2e/harness"
)

// root is the repository's, as seen from here.
const root = "../.."

var binary harness.Binary

func TestMain(m *testing.M) { os.Exit(binary.Run(m, (*testing.M).Run)) }
