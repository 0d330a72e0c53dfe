package k8s

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"oncegate/internal/config"
)

// The compose file is one, by the specification's own reader, and what it says of
// oncegate is so.
func TestCompose(t *testing.T) {
	const folder = root + "/deploy/compose"
	text, err := os.ReadFile(folder + "/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: folder, Environment: types.Mapping{},
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}},
	}, func(o *loader.Options) { o.SetProjectName("shop", true) })
	if err != nil {
		t.Fatal(err)
	}
	s := project.Services["oncegate"]
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(project.Services["app"].Ports) > 0 {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
		t.Errorf("no Dockerfile where it builds: %v", err)
	}
	killed := *s.Environment["ONCEGATE_KILLED_AFTER"]
	if time.Duration(*s.StopGracePeriod).String() != killed {
		t.Errorf("oncegate is told %s, and killed after %v", killed, time.Duration(*s.StopGracePeriod))
	}

	// Its configuration, with the secret where compose would mount it.
	file, err := os.ReadFile(folder + "/oncegate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "stripe")
	if err := os.WriteFile(secret, []byte("whsec_test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Secrets[0].Source != "stripe" || !strings.Contains(string(file), "file:/run/secrets/stripe\n") {
		t.Errorf("secrets %+v", s.Secrets)
	}
	written := filepath.Join(filepath.Dir(secret), "oncegate.yaml")
	if err := os.WriteFile(written, []byte(strings.Replace(string(file), "/run/secrets/stripe", secret, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: written, Env: append(imageEnv(t), "ONCEGATE_KILLED_AFTER="+killed)})
	if err != nil {
		t.Fatal(err)
	}
	if c.Upstream.Address != "app:8080" || len(c.Warnings) > 0 {
		t.Errorf("%+v", c)
	}
}
