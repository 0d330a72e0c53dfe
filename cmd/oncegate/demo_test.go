package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

// What the demo says that one can do next can be done, and tells of the same
// deliveries each time.
func TestDemoHints(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary(t), "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+testenv.Dir(t))
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(60 * time.Second); !strings.Contains(out.String(), "Ctrl-C ends everything"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the demo hangs: %s", out.String())
		}
	}
	_, hints, _ := strings.Cut(out.String(), "Still running. Look around:")
	hints, byHand, _ := strings.Cut(hints, "Or by hand")
	var results []string
	run := func(text string) {
		t.Helper()
		sh := exec.Command("sh", "-ec", text)
		said, err := sh.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", text, err, said)
		}
		results = append(results, string(said))
	}
	time.Sleep(1500 * time.Millisecond) // evidence is written a second behind
	for _, m := range regexp.MustCompile(`(?m)^  (\S.*?)(?:  +\S.*)?$`).FindAllStringSubmatch(hints, -1) {
		run(m[1])
	}
	if len(results) != 10 {
		t.Errorf("%d hints were run", len(results))
	}
	_, byHand, _ = strings.Cut(byHand, ":\n\n")
	byHand, _, _ = strings.Cut(byHand, "\n\n")
	run(byHand)
	for i, want := range []string{
		`evt_demo\d`, `evt_demo\d`, `oncegate_deliveries_total`, `evt_demo\d`, `order=evt_demo001`, `event evt_demo001 of stripe: done`,
		`stripe +stripe +500 +100 +400`, `"result":"fresh"`, `event evt_demo001 of stripe: done`, `10 |9 `, `Oncegate-Result: fresh`,
	} {
		if i >= len(results) || !regexp.MustCompile(want).MatchString(results[i]) {
			t.Errorf("hint %d does not print %s: %s", i, want, results[min(i, len(results)-1)])
		}
	}
}
