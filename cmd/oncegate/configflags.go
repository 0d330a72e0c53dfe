package main

import (
	"github.com/spf13/cobra"

	"oncegate/internal/config"
)

// configFlags are the flags that say where a configuration comes from.
type configFlags struct {
	path, envFile, stateDir string
}

// add adds the flags that every command has which reads the configuration.
func (f *configFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.path, "config", "c", "", "the configuration `file` (default "+config.DefaultPath+")")
	flags.StringVar(&f.envFile, "env-file", "", "a `file` of variables, such as Laravel's .env")
	flags.StringVar(&f.stateDir, "state-dir", "", "the state `folder`, which holds the SQLite file, the journal and the operators' token")
}

// options make what config.Load asks for.
func (f *configFlags) options(env []string) config.Options {
	return config.Options{
		Path: f.path, EnvFile: f.envFile, Env: env, Flags: config.Flags{StateDir: f.stateDir}, Readable: readable,
	}
}

// readable says whether the store's driver can read what it is given.
func readable(s config.Store) error {
	if s.Kind == "sqlite" {
		return nil
	}
	store, err := backendOf(s)
	if err != nil {
		return err
	}
	return store.Close()
}

// serveFlags are those of `serve` and `check`: all that the configuration takes
// from the command line.
type serveFlags struct {
	configFlags
	over config.Flags
}

func (f *serveFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.over.Upstream, "upstream", "", "the app's `URL`, such as http://127.0.0.1:8000")
	flags.StringArrayVar(&f.over.Routes, "route", nil, "a route without a file, as `NAME=PATH`: --route stripe=/stripe/webhook reads STRIPE_WEBHOOK_SECRET; may be repeated")
	flags.StringVar(&f.over.Listen, "listen", "", "the public `address`")
	flags.StringVar(&f.over.Health, "health", "", "the `address` of /livez, /readyz and /metrics")
	flags.StringVar(&f.over.Mode, "mode", "", "what routes do unless they say otherwise: enforce, observe or off")
	flags.StringVar(&f.over.LogLevel, "log-level", "", "the least `level` that is logged: debug, info, warn or error")
}

func (f *serveFlags) options(env []string) config.Options {
	o := f.configFlags.options(env)
	stateDir := o.Flags.StateDir
	o.Flags = f.over
	o.Flags.StateDir = stateDir
	o.Instead = "do without one: --upstream http://127.0.0.1:8000 --route stripe=/stripe/webhook"
	return o
}
