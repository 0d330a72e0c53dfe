// Package model_test checks the model of the claim protocol with Debian's spin,
// and holds it to find seeded bugs.
package model_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// check runs the model with the given definitions and returns what the checker
// found: nothing, or the first violation. It is built without optimization, for
// building is what takes long.
func check(t *testing.T, liveness bool, defines ...string) (violation string) {
	t.Helper()
	model, err := filepath.Abs("claim.pml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v (Debian: apt-get install spin gcc)\n%s", name, err, out)
		}
		return string(out)
	}
	run("spin", append([]string{"-a"}, append(defines, model)...)...)
	build := []string{"-O0", "-w", "-DMEMLIM=1500", "-DHC4", "-o", "pan", "pan.c"}
	search := []string{"-m1000000"}
	if liveness {
		build = append([]string{"-DNFAIR=12"}, build...)
		search = append(search, "-a", "-f")
	} else {
		build = append([]string{"-DNOCLAIM", "-DSAFETY"}, build...)
	}
	run("gcc", build...)
	out := run(filepath.Join(dir, "pan"), search...)
	if strings.Contains(out, "out of memory") || strings.Contains(out, "max search depth") || !strings.Contains(out, "errors: ") {
		t.Fatalf("the search is not complete:\n%s", out)
	}
	return regexp.MustCompile(`(?m)^pan:\d+: (.*) \(at depth`).FindString(out)
}

// mishaps is how many mishaps a history of the model may have. Two take minutes
// and some gigabytes.
func mishaps() string {
	if n := os.Getenv("MODEL_MISHAPS"); n != "" {
		return "-DMISHAPS=" + n
	}
	return "-DMISHAPS=1"
}

func TestModel(t *testing.T) {
	for _, policy := range []string{"RETRY", "HOLD", "WITNESS"} {
		t.Run(policy, func(t *testing.T) {
			if v := check(t, false, "-D"+policy, mishaps()); v != "" {
				t.Error(v)
			}
			// Without mishaps, but with every pause: that it settles.
			if v := check(t, true, "-D"+policy, "-DMISHAPS=0"); v != "" {
				t.Error(v)
			}
		})
	}
}

func TestSeededBugs(t *testing.T) {
	for _, bug := range []struct {
		name, policy, define string
		finds                string
	}{
		{"a change compares the token alone", "HOLD", "BUG_TOKEN", "busy"},
		{"a lease that is over is taken straight", "HOLD", "BUG_BLIND", "st!="},
		{"a lease that is over is taken straight, and nobody is told", "RETRY", "BUG_BLIND", "doubt"},
		{"a takeover does not wait for the app", "RETRY", "BUG_NOWAIT", "busy"},
		{"begin leaves out the app limit", "RETRY", "BUG_LIMIT", "busy"},
		{"a witness is asked before the app limit", "WITNESS", "BUG_EARLY", "busy"},
		{"a witness's no counts for any version", "WITNESS", "BUG_OLDNO", "busy"},
		{"an attempt is sent after its lease", "RETRY", "BUG_SENDLATE", "busy"},
		{"a given-up begin is not undone", "RETRY", "BUG_NOUNDO", "violated 0"},
	} {
		t.Run(bug.name, func(t *testing.T) {
			if v := check(t, false, "-D"+bug.policy, "-D"+bug.define, "-DMISHAPS=1"); !strings.Contains(v, bug.finds) {
				t.Errorf("found %q", v)
			}
		})
	}
}
