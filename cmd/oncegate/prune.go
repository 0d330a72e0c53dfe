package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
	"oncegate/lock"
)

func (p *program) pruneCommand() *cobra.Command {
	var flags configFlags
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove what is past its retention now",
		Long: `prune removes claims and evidence that are past their retention. serve does it by
itself, a little at a time; this is for a store that nobody serves from, or that
must become smaller now. It removes nothing else, and may run while oncegate does.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(flags.options(p.env))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			claims, entries, err := prune(ctx, c)
			if claims+entries > 0 || err == nil {
				fmt.Fprintf(p.stdout, "removed %s and %d records of evidence\n", count(claims, "claim"), entries)
			}
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().DurationVar(&limit, "timeout", 10*time.Minute, "how long it may take")
	return cmd
}

// pruneBatch is how many records one transaction removes at the most.
const pruneBatch = 500

func prune(ctx context.Context, c *config.Config) (claims, entries int, err error) {
	err = withStore(ctx, c, func(ctx context.Context, store backend) (err error) {
		return lock.PurgeAll(ctx, store, c.Namespace, pruneBatch, func(n int, _ error) { claims += n })
	})
	if err != nil {
		return claims, 0, err
	}
	kept, err := evidenceFor(c)
	if kept == nil || err != nil {
		return claims, 0, err
	}
	before := time.Now().Add(-c.EvidenceRetention)
	for n := pruneBatch; err == nil && n == pruneBatch; entries += n {
		n, err = kept.Purge(ctx, c.Namespace, before, pruneBatch)
	}
	return claims, entries, errors.Join(err, kept.Close())
}
