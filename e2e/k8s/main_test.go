package k8s

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// root is the repository's, as seen from here.
const root = "../.."

// scratch is removed when all tests have run.
var scratch string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(kubectl(os.Args[1:]))
	}
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "once-k8s-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch)
		return m.Run()
	}())
}

// builtOnce builds oncegate's command as the Dockerfile does, when it is first
// asked for.
var builtOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "oncegate")
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace,nethttpomithttp2", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/oncegate")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/oncegate: %w\n%s", err, out)
	}
	return path, nil
})
