package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"oncegate/internal/strictyaml"
	"oncegate/lock"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const cliPage = "../../docs/cli.md"

// docs/cli.md is what the program says of itself: its commands, their flags, and
// the exit codes. `go test ./cmd/oncegate -update` writes it anew.
func TestPageSaysWhatTheProgramSays(t *testing.T) {
	want := pageText()
	if *update {
		writeFile(t, cliPage, want)
		if err := os.Chmod(cliPage, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/cli.md is not what the program says; write it anew: go test ./cmd/oncegate -update")
	}
}

func pageText() string {
	var b strings.Builder
	b.WriteString(`# The command line

Written from the program by a test: see cmd/oncegate/docs_test.go.

## Exit codes

| code | meaning |
|---|---|
`)
	for _, e := range exits {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}
	var write func(cmd *cobra.Command)
	write = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		if cmd.HasParent() {
			about := cmd.Long
			if about == "" {
				about = cmd.Short
			}
			fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n\nusage: %s\n", cmd.CommandPath(), about, cmd.UseLine())
			if flags := cmd.LocalFlags().FlagUsages(); flags != "" {
				fmt.Fprintf(&b, "\n%s", flags)
			}
			b.WriteString("```\n")
		}
		for _, sub := range cmd.Commands() {
			write(sub)
		}
	}
	root := (&program{}).root()
	root.InitDefaultHelpCmd()
	write(root)
	b.WriteString("\n`oncegate completion bash|zsh|fish|powershell` prints a completion script for a shell.\n")
	return b.String()
}

// Each kind of error has its code, wrapped twice too, and each code its meaning.
func TestExitCodes(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("b: %w", fmt.Errorf("a: %w", err)) }
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("any"), exitFailed},
		{errNumbers, exitFailed},
		{errHurried, exitFailed},
		{&usageError{errors.New("flag")}, exitUsage},
		{strictyaml.Faults{{Msg: "fault"}}, exitConfig},
		{lock.ErrUnavailable, exitUnavailable},
		{lock.ErrUnfit, exitUnfit},
		{errNotFound, exitNotFound},
	} {
		err := c.err
		if err != nil {
			err = wrapped(err)
		}
		if got := exitCode(err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	for i, e := range exits {
		if e.code != i || e.meaning == "" {
			t.Errorf("the table of exit codes lacks %d", i)
		}
	}
}
