package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"oncegate/internal/shop"
	"oncegate/internal/testenv"
)

var servers testenv.Set

// A suite is this package's tests, and the servers that they share.
type suite struct{ m *testing.M }

func (s suite) Run() int { return servers.Run(s.m) }

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"oncegate": main})
}

// TestScripts runs the scripts in testdata/script, each in a folder of its own,
// with a shop at $APP, an app at $COUNTS that answers everything with how often it
// was asked that path, and free addresses in $LISTEN, $HEALTH and $ADMIN. They have
// these commands beside testscript's own:
//
//	example NAME FILE             writes that example of docs/providers.md to a file
//	exits CODE oncegate ARGS...   runs it and sees its exit code
//	ready                         waits until $HEALTH says that it is ready
//	get STATUS URL                requests, sees the status, and prints headers and body
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			app := httptest.NewServer(shop.New("whsec_test", 0))
			env.Defer(app.Close)
			env.Setenv("APP", app.URL)
			counts := httptest.NewServer(newCounter())
			env.Defer(counts.Close)
			env.Setenv("COUNTS", counts.URL)
			for _, name := range []string{"LISTEN", "HEALTH", "ADMIN"} {
				env.Setenv(name, fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)))
			}
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			docs, err := filepath.Abs("../../docs")
			env.Setenv("DOCS", docs)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exitsWith, "ready": ready, "get": get, "example": example,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// newCounter answers with how many requests a path has had that were no GET.
func newCounter() http.Handler {
	var mu sync.Mutex
	asked := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet {
			asked[r.URL.Path]++
		}
		fmt.Fprintf(w, "%s %d\n", r.URL.Path, asked[r.URL.Path])
	})
}

func example(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: example NAME FILE")
	}
	page, err := os.ReadFile(filepath.Join(ts.Getenv("DOCS"), "providers.md"))
	ts.Check(err)
	_, rest, _ := strings.Cut(string(page), "<!-- example: "+args[0]+" -->\n```yaml\n")
	text, _, found := strings.Cut(rest, "```\n<!-- end -->")
	if !found {
		ts.Fatalf("docs/providers.md has no example %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: ready")
	}
	if err := awaitReady(ts.Getenv("HEALTH")); err != nil {
		ts.Fatalf("%v", err)
	}
}

// awaitReady asks until a health listener says ready.
func awaitReady(health string) error {
	client := http.Client{Timeout: 2 * time.Second}
	var last error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		response, err := client.Get("http://" + health + "/readyz")
		if err != nil {
			last = err
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		last = fmt.Errorf("/readyz answered %s", response.Status)
	}
	return fmt.Errorf("not ready in time: %w", last)
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: get STATUS URL")
	}
	response, err := http.Get(args[1])
	ts.Check(err)
	defer response.Body.Close()
	if got := strconv.Itoa(response.StatusCode); got != args[0] {
		ts.Fatalf("GET %s: status %s, want %s", args[1], got, args[0])
	}
	var text strings.Builder
	ts.Check(response.Header.Write(&text))
	body, err := io.ReadAll(response.Body)
	ts.Check(err)
	_, err = fmt.Fprintf(ts.Stdout(), "%s\n%s", text.String(), body)
	ts.Check(err)
}

// runHere runs a command within the test, for what needs no process of its own.
func runHere(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut strings.Builder
	code = run(t.Context(), args, env, strings.NewReader(""), &out, &errOut)
	return code, out.String(), errOut.String()
}

// binary is this package's command as a program: testscript puts it on the path.
func binary(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("oncegate")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
