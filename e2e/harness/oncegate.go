package harness

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"oncegate/internal/testenv"
)

// A Binary is oncegate's command, built from this tree when a test first asks
// for it. The zero Binary is ready for use.
type Binary struct {
	// Tags are build tags to build it with.
	Tags string

	once sync.Once
	dir  string
	err  error
}

// Run runs a package's tests with the given function, such as that of a
// testenv.Set, removes what was built for them, and returns the exit code for
// TestMain.
func (b *Binary) Run(m *testing.M, run func(*testing.M) int) int {
	code := run(m)
	if b.dir != "" {
		if err := os.RemoveAll(b.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
	}
	return code
}

// Remove removes what was built, where Run does not.
func (b *Binary) Remove(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(b.dir); err != nil {
		t.Error(err)
	}
}

// Path returns the built command.
func (b *Binary) Path(t testing.TB) string {
	t.Helper()
	b.once.Do(func() { b.err = b.build() })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.dir, "oncegate")
}

func (b *Binary) build() (err error) {
	if b.dir, err = os.MkdirTemp("", "once-bin-"); err != nil {
		return err
	}
	// Built as its own module says, not with what the tests require.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "oncegate").Output()
	if err != nil {
		return fmt.Errorf("go list -m oncegate: %w", err)
	}
	cmd := exec.Command("go", "build", "-tags", b.Tags, "-o", b.dir+"/oncegate", "./cmd/oncegate")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/oncegate: %w\n%s", err, out)
	}
	return nil
}

// StripeRoute is the route of the shop's webhook, for Config.Routes.
const StripeRoute = `
  stripe:
    path: ` + WebhookPath + `
    provider: stripe
    secrets: ` + Secret + `
`

// A Config says how a gate is set up.
type Config struct {
	// Upstream is the app's URL.
	Upstream string
	// Top holds further top-level lines of the configuration file, and Routes
	// its routes, indented by two.
	Top, Routes string
	// StateDir is where it keeps its SQLite file. Empty means a folder of its
	// own; two gates with one folder share their claims.
	StateDir string
	// Env is added to the environment.
	Env []string
	// Host is the address on which it listens. Empty means 127.0.0.1.
	Host string
	// Through is a command that runs it, such as nsenter into another network.
	Through []string
}

// A Gate is a running oncegate.
type Gate struct {
	*testenv.Process
	// URL is where senders deliver, Health where it is asked how it is, Admin
	// where operators decide.
	URL, Health, Admin string
	// StateDir is where it keeps its SQLite file.
	StateDir string
}

// Serve starts oncegate and waits until it is ready. It ends with the test.
func (b *Binary) Serve(t testing.TB, c Config) *Gate {
	t.Helper()
	if c.StateDir == "" {
		c.StateDir = testenv.Dir(t)
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	own := func() string { return fmt.Sprintf("%s:%d", c.Host, testenv.Port(t)) }
	listen, health, admin := own(), own(), own()
	file := filepath.Join(testenv.Dir(t), "oncegate.yaml")
	text := fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: %s
state_dir: %s
upstream: %s
%s
routes:%s`, listen, health, admin, c.StateDir, c.Upstream, c.Top, c.Routes)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &Gate{
		URL: "http://" + listen, Health: "http://" + health, Admin: "http://" + admin,
		StateDir: c.StateDir,
	}
	command := append(slices.Clone(c.Through), b.Path(t), "serve", "--config", file)
	t.Cleanup(func() { g.checkEnd(t) })
	g.Process = testenv.Run(t, testenv.Command{
		Name: "oncegate", Path: command[0], Args: command[1:],
		Dir: c.StateDir, Env: append(os.Environ(), c.Env...), Ready: g.ready,
	})
	return g
}

// checkEnd wants that nothing in the process's life was a programming error.
// It runs after the process has ended.
func (g *Gate) checkEnd(t testing.TB) {
	if g.Process == nil {
		return // it never started
	}
	for _, bad := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE"} {
		if lines := g.Log(bad); len(lines) > 0 {
			t.Errorf("oncegate wrote %q", lines)
		}
	}
}

// Addr returns the host:port of URL.
func (g *Gate) Addr() string { return strings.TrimPrefix(g.URL, "http://") }

func (g *Gate) ready() error {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get(g.Health + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answered %s", response.Status)
	}
	return nil
}

// Metric adds up the series of a metric that carry all the given labels, each
// written name=value. A metric that isn't there is 0.
func (g *Gate) Metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	sum, err := g.TryMetric(name, labels...)
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	return sum
}

// TryMetric is Metric where the gate may not answer.
func (g *Gate) TryMetric(name string, labels ...string) (sum float64, err error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(g.Health + "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, err
	}
	for _, m := range families[name].GetMetric() {
		have := make(map[string]bool)
		for _, pair := range m.GetLabel() {
			have[pair.GetName()+"="+pair.GetValue()] = true
		}
		matches := true
		for _, label := range labels {
			matches = matches && have[label]
		}
		if matches {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return sum, nil
}

// Log returns the lines that it has logged and that contain all the texts.
func (g *Gate) Log(texts ...string) (lines []string) {
	for line := range strings.Lines(string(g.Output().Bytes())) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}
