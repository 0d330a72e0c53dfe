package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func (p *program) demoCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a careless shop, without oncegate and with it",
		Long: `demo starts a little web shop that charges a customer for every webhook it gets,
twice: once bare, and once with oncegate in front of it. It sends both the same
signed Stripe events, each several times over, as Stripe does when an answer is
late or lost, and shows what the shop did.

Everything runs on free ports of this machine, with SQLite in a temporary folder,
and through real connections. It keeps running, so that one can look and send
more, until Ctrl-C; with --once it ends by itself, with 0 if the numbers are
exactly right.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context(), once) },
	}
	cmd.Flags().BoolVar(&once, "once", false, "end after the table")
	return cmd
}

// errNumbers says that the demo did not show what it has to.
var errNumbers = errors.New("the numbers are not what they must be")

func (p *program) demo(ctx context.Context, once bool) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "oncegate-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stage, err := newStage(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()

	play, err := newPlay(stage)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Sending %d Stripe events, each %d times, to a shop without oncegate and to one behind it ...\n\n", demoEvents, demoCopies)
	without := play.send(ctx, stage.bare.url)
	with := play.send(ctx, stage.front)
	if ctx.Err() != nil {
		return nil // Ctrl-C, before there was anything to show
	}
	without.effects, with.effects = stage.bare.Effects(), stage.behind.Effects()
	if err := p.printDemo(without, with); err != nil {
		return err
	}
	if wrong := errors.Join(without.wrong(demoCopies), with.wrong(1), with.wrongAnswers()); wrong != nil {
		return fmt.Errorf("%w: %w; the log is below\n%s", errNumbers, wrong, tail(stage.log))
	}
	if once {
		return nil
	}
	if err := p.printDemoHints(stage); err != nil {
		return err
	}
	<-ctx.Done()
	fmt.Fprintln(p.stdout, "\nStopping; the temporary folder is removed.")
	return nil
}

// tail is the end of the demo's log, for whoever has to find out.
func tail(file string) string {
	const most = 4 << 10
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}
