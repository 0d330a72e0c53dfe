package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"oncegate/internal/config"
	"oncegate/internal/telemetry"
)

func (p *program) serveCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Stand in front of the app",
		Long: `serve listens, lets each webhook on a route take effect once, and passes all else
to the app as it is.

  oncegate serve                        reads oncegate.yaml
  oncegate serve --upstream http://127.0.0.1:8000 --route stripe=/stripe/webhook

Without a file, the secret of --route stripe=... is STRIPE_WEBHOOK_SECRET in the
environment, and claims are kept in SQLite in the state folder.

SIGTERM and SIGINT stop it: it is no longer ready, serves new connections for
drain_delay, and gives what is in hand drain_timeout to finish. Another one, more
than a second later, stops it at once. SIGHUP loads the configuration anew, as a whole or not at all; so does
a change of one of its files.

Logs are lines of JSON on standard output. Nobody waits for who reads them: what is
not read in time is lost, and counted (oncegate_log_lost_total).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.serve(cmd.Context(), flags.options(p.env))
		},
	}
	flags.add(cmd)
	return cmd
}

// errHurried says that a second signal came.
var errHurried = errors.New("stopped at once by a second signal; attempts that were in hand will be found lapsed")

// serve runs until ctx is over or a signal comes, and returns when everything
// is drained; or at once, when a second signal comes.
func (p *program) serve(ctx context.Context, o config.Options) error {
	// Asked for before anything is begun, so that no signal finds nobody.
	stop, reload := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(stop)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	// Where nobody reads the log any more, it is lost; that must not end what is served.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	c, err := config.Load(o)
	if err != nil {
		return err
	}
	level, err := telemetry.ParseLevel(c.LogLevel)
	if err != nil {
		return err
	}
	s := &service{version: thisBuild().Version}
	s.level.Set(level)
	out := telemetry.NewLogWriter(p.stdout)
	defer out.Close(lastLog)
	s.log, s.logLost = telemetry.NewLogger(out, &s.level), out.Lost
	redis.SetLogger(redisLog{s.log})
	limitMemory(p.env, s.log)
	if err := s.start(ctx, c); err != nil {
		return err
	}
	s.watch(o, reload)
	if err := p.announce(s, c); err != nil {
		s.log.Warn("could not print how it was started", "error", err)
	}
	return s.untilStopped(ctx, stop)
}

// announce tells a person how it was started.
func (p *program) announce(s *service, c *config.Config) error {
	fmt.Fprintln(p.stderr, thisBuild())
	for _, w := range c.Warnings {
		fmt.Fprintln(p.stderr, "warning:", w)
	}
	if err := describe(p.stderr, c, s.publicAddr(), s.healthAddr(), s.adminAddr()); err != nil {
		return err
	}
	if !s.store.Fit() {
		fmt.Fprintln(p.stderr, "warning: the store is out of reach; deliveries on routes are answered `unavailable` until it answers, all else passes")
	}
	return nil
}

// untilStopped waits for the reason to stop, and stops.
func (s *service) untilStopped(ctx context.Context, signals <-chan os.Signal) error {
	var why error
	select {
	case got := <-signals:
		s.log.Info("stopping", "signal", got.String())
	case <-ctx.Done():
		s.log.Info("stopping", "reason", context.Cause(ctx).Error())
	case why = <-s.broken:
		s.log.Error("stopping: a listener ended", "error", why)
	}
	stopped, began := make(chan error, 1), time.Now()
	go func() { stopped <- s.stop() }()
	for {
		select {
		case err := <-stopped:
			return errors.Join(why, err)
		case <-signals:
			if time.Since(began) >= oneWish {
				return errHurried // main ends the process, and with it what was not waited for
			}
		}
	}
}

// oneWish is how long after the first signal further ones say nothing new: Ctrl-C
// and some supervisors reach a process twice, by itself and by its group.
const oneWish = time.Second
