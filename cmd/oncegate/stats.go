package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/operator"
	"oncegate/internal/strictyaml"
	"oncegate/lock"
)

func (p *program) statsCommand() *cobra.Command {
	var flags deskFlags
	var within string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count deliveries, duplicates and claims",
		Long: `stats counts the deliveries that had an event key, by route and provider: first ones,
duplicates, and late duplicates, which came more than five minutes after the first;
and the claims by state. The figures of deliveries are from evidence, which is
written a second behind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age := time.Duration(0)
			if within != "" {
				var err error
				if age, err = strictyaml.ParseDuration(within); err != nil {
					return &usageError{fmt.Errorf("--within: %w", err)}
				}
			}
			var s *operator.Stats
			err := p.withDesk(cmd.Context(), &flags, func(ctx context.Context, d desk) (err error) {
				s, err = d.Stats(ctx, age)
				return ofDesk(err)
			})
			if err != nil {
				return err
			}
			if flags.asJSON {
				return json.NewEncoder(p.stdout).Encode(s)
			}
			return printStats(p.stdout, s)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&within, "within", "", "only deliveries of the last `time`: 1h, 7d; without it all that evidence has")
	return cmd
}

func printStats(w io.Writer, s *operator.Stats) error {
	if !s.Evidence {
		fmt.Fprintln(w, noEvidence(s.EvidenceError))
	} else {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ROUTE\tPROVIDER\tDELIVERIES\tFIRST\tDUPLICATES\tLATE\tDUPLICATE RATIO")
		for _, r := range s.Routes {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%.1f %%\n", r.Route, orDash(r.Provider), r.Deliveries, r.First, r.Duplicates, r.Late,
				100*float64(r.Duplicates)/float64(max(1, r.Deliveries)))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	states := []lock.State{lock.StateDone, lock.StateRunning, lock.StateReleased, lock.StateUnknown, lock.StateTombstone}
	fmt.Fprint(table, "SCOPE")
	for _, state := range states {
		fmt.Fprintf(table, "\t%s", state)
	}
	fmt.Fprintln(table)
	for _, scope := range sortedKeys(s.Claims) {
		fmt.Fprint(table, scope)
		for _, state := range states {
			fmt.Fprintf(table, "\t%d", s.Claims[scope][state.String()])
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
