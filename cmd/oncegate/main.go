// Command oncegate is a sidecar reverse proxy that lets each webhook take effect
// once. `oncegate help` lists what it can do; docs/cli.md says it at length.
//
// One file holds one command, and nothing but the command: it reads flags, wires
// packages together, and prints. main alone ends the process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"oncegate/internal/strictyaml"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run does what the arguments ask for, and returns the exit code; see exits.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	silenceRedis()
	p := &program{env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	root := p.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !p.began {
		err = &usageError{err}
	}
	p.complain(err)
	return exitCode(err)
}

// A program is what the commands work with: the surroundings of a process.
type program struct {
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	// began says that a command's flags and arguments were right, and that it
	// was begun: an error before is one of usage.
	began bool
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "oncegate",
		Short:         "Let each webhook take effect once",
		Long:          "oncegate stands in front of a web app and makes every webhook take effect once.\nTry it: oncegate demo",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			p.began = true
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.AddCommand(
		p.serveCommand(), p.demoCommand(), p.checkCommand(), p.sendCommand(), p.explainCommand(), p.providersCommand(),
		p.claimsCommand(), p.statsCommand(), p.pruneCommand(), p.doctorCommand(), p.migrateCommand(), p.healthcheckCommand(), p.versionCommand(),
	)
	return root
}

// complain tells a person what went wrong. What is wrong with a configuration
// already says where, one line a fault.
func (p *program) complain(err error) {
	var faults strictyaml.Faults
	switch {
	case err == nil || errors.Is(err, errSaid):
	case errors.As(err, &faults):
		fmt.Fprintln(p.stderr, faults)
		hint := ""
		if errors.Is(err, errAskRunning) {
			hint = "; " + errAskRunning.Error()
		}
		fmt.Fprintf(p.stderr, "oncegate: the configuration is not right (%s)%s\n", count(len(faults), "fault"), hint)
	default:
		fmt.Fprintf(p.stderr, "oncegate: %v\n", err)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintln(p.stderr, "`oncegate help` and `oncegate COMMAND --help` say how it is used")
	}
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
