package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
)

func (p *program) checkCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say everything that is wrong with the configuration",
		Long: `check reads the configuration exactly as serve does, and says everything that is
wrong with it at once, with file, line and field. It starts nothing and asks
nobody: neither the store nor the app.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := config.Load(flags.options(p.env))
			if err != nil {
				return err
			}
			for _, w := range c.Warnings {
				fmt.Fprintln(p.stderr, "warning:", w)
			}
			if err := describe(p.stdout, c, c.Listen, c.Health, c.Admin); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "ok: %s, %s\n", count(len(c.Routes), "route"), count(len(c.Warnings), "warning"))
			return err
		},
	}
	flags.add(cmd)
	return cmd
}
