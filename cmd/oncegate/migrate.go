package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
)

func (p *program) migrateCommand() *cobra.Command {
	var flags configFlags
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or change the store's tables",
		Long: `migrate brings the store's tables up to what this version needs. serve does it by
itself, unless the configuration says store.migrate: never. It may be run again
at any time, and while oncegate runs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(flags.options(p.env))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			if err := migrate(ctx, c); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "%s is up to date\n", c.Store)
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Minute, "how long it may take")
	return cmd
}

func migrate(ctx context.Context, c *config.Config) (err error) {
	store, err := backendOf(c.Store)
	if err != nil {
		return err
	}
	defer func() {
		if closing := store.Close(); err == nil {
			err = closing
		}
	}()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	return migrateEvidence(ctx, c)
}

func migrateEvidence(ctx context.Context, c *config.Config) (err error) {
	store, err := evidenceOf(c)
	if store == nil || err != nil {
		return err
	}
	defer func() {
		if closing := store.Close(); err == nil {
			err = closing
		}
	}()
	return store.Migrate(ctx)
}
