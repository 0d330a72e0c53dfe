// Package model_test checks the model of the claim protocol with Debian's spin,
// and holds it to find seeded bugs.
package model_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// whole is for make model: twenty minutes on one core, and 8 GB of memory.
var whole = flag.Bool("whole", false, "check two mishaps for safety and one for liveness, and not one and none")

// A search is one run of the checker, through all that the model can do.
type search struct {
	defines []string
	// liveness looks for histories that never come to rest, under weak fairness;
	// else it is assertions that are looked for.
	liveness bool
	// large builds a checker that takes longer to build, and less room for a state.
	// It keeps states whole, as hashes don't: with those it missed one in a hundred.
	large bool
}

// run returns what the checker found: nothing, or the first violation.
func (s search) run(t *testing.T) (violation string) {
	t.Helper()
	model, err := filepath.Abs("claim.pml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v (Debian: apt-get install spin gcc)\n%s", name, err, out)
		}
		return string(out)
	}
	args := []string{"-a"}
	for _, d := range s.defines {
		args = append(args, "-D"+d)
	}
	run("spin", append(args, model)...)
	build := []string{"-O0", "-w", "-o", "pan", "pan.c", "-DMEMLIM=1500"}
	search := []string{"-m1000000"}
	if s.large {
		build = []string{"-O2", "-w", "-o", "pan", "pan.c", "-DMEMLIM=9500", "-DCOLLAPSE", "-DJOINPROCS"}
		search = []string{"-m10000000", "-w26"}
	}
	if s.liveness {
		build = append(build, "-DNFAIR=4")
		search = append(search, "-a", "-f")
	} else {
		build = append(build, "-DNOCLAIM", "-DSAFETY")
	}
	run("gcc", build...)
	out := run(filepath.Join(dir, "pan"), search...)
	if strings.Contains(out, "out of memory") || strings.Contains(out, "max search depth") || !strings.Contains(out, "errors: ") {
		t.Fatalf("the search is not complete:\n%s", out)
	}
	t.Logf("%s: %s", strings.Join(s.defines, " "), regexp.MustCompile(`\d\S* states, stored`).FindString(out))
	return regexp.MustCompile(`(?m)^pan:\d+: (.*) \(at depth`).FindString(out)
}

func TestModel(t *testing.T) {
	safety, liveness := "MISHAPS=1", "MISHAPS=0"
	if *whole {
		safety, liveness = "MISHAPS=2", "MISHAPS=1"
	}
	for _, policy := range []string{"RETRY", "HOLD", "WITNESS"} {
		t.Run(policy, func(t *testing.T) {
			if v := (search{defines: []string{policy, safety}, large: *whole}).run(t); v != "" {
				t.Error(v)
			}
			if v := (search{defines: []string{policy, liveness}, liveness: true, large: *whole}).run(t); v != "" {
				t.Error(v)
			}
		})
	}
}

func TestSeededBugs(t *testing.T) {
	for _, bug := range []struct {
		name, policy, define string
		finds                string
		liveness             bool
	}{
		{"a change compares the token alone", "HOLD", "BUG_TOKEN", "busy", false},
		{"a lease that is over is taken straight", "HOLD", "BUG_BLIND", "st!=", false},
		{"a lease that is over is taken straight, and nobody is told", "RETRY", "BUG_BLIND", "doubt", false},
		{"a takeover does not wait for the app", "RETRY", "BUG_NOWAIT", "busy", false},
		{"begin leaves out the app limit", "RETRY", "BUG_LIMIT", "busy", false},
		{"a witness is asked before the app limit", "WITNESS", "BUG_EARLY", "busy", false},
		{"a witness's no counts for any version", "WITNESS", "BUG_OLDNO", "busy", false},
		{"an attempt is sent after its lease", "RETRY", "BUG_SENDLATE", "busy", false},
		{"a given-up begin is not undone", "RETRY", "BUG_NOUNDO", "violated 0", false},
		{"nobody says that a lease is over", "RETRY", "BUG_NOLAPSE", "acceptance cycle", true},
	} {
		t.Run(bug.name, func(t *testing.T) {
			s := search{defines: []string{bug.policy, bug.define, "MISHAPS=1"}, liveness: bug.liveness}
			if v := s.run(t); !strings.Contains(v, bug.finds) {
				t.Errorf("found %q", v)
			}
		})
	}
}
