package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
	"oncegate/lock"
)

func (p *program) claimsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "Look at what is known of events",
		Long: `claims looks at the records in the store: which events were seen, what became of
them, and what was answered. It reads the store itself, and works while oncegate
runs and while it doesn't.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.claimsListCommand(), p.claimsShowCommand())
	return cmd
}

type listFlags struct {
	configFlags
	scope, state, key, part, tag string
	limit                        int
	asJSON                       bool
}

func (p *program) claimsListCommand() *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List claims",
		Long: `ls lists claims, at most --limit of them, ordered by scope. Neither bodies nor
secrets are part of it.

  oncegate claims ls --state unknown
  oncegate claims ls --tag order=4471`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listClaims(cmd.Context(), &flags) },
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.scope, "scope", "", "only claims of this `scope`: the route's name, unless it says otherwise")
	cmd.Flags().StringVar(&flags.state, "state", "", "only claims in this `state`: running, done, released, unknown or tombstone")
	cmd.Flags().StringVar(&flags.key, "key", "", "only the claims on this event `key`")
	cmd.Flags().StringVar(&flags.part, "part", "", "only claims whose event key holds this `text`")
	cmd.Flags().StringVar(&flags.tag, "tag", "", "only claims with this tag, as `name=value`")
	cmd.Flags().IntVar(&flags.limit, "limit", 50, "how many are listed at most")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print one JSON object a line")
	return cmd
}

const maxListed = 100_000

// filter makes of the flags what the store is asked.
func (f *listFlags) filter(namespace string) (lock.Filter, error) {
	filter := lock.Filter{Namespace: namespace, Scope: f.scope, TextPart: f.part, Tag: f.tag}
	switch {
	case f.limit < 1 || f.limit > maxListed:
		return filter, &usageError{fmt.Errorf("--limit must be between 1 and %d", maxListed)}
	case f.tag != "" && !strings.Contains(f.tag, "="):
		return filter, &usageError{errors.New("--tag must be name=value, as in order=4471")}
	case f.key != "" && f.part != "":
		return filter, &usageError{errors.New("--key and --part exclude each other")}
	case f.key != "":
		filter.TextPart = f.key
	}
	if f.state == "" {
		return filter, nil
	}
	var names []string
	for _, s := range []lock.State{lock.StateRunning, lock.StateDone, lock.StateReleased, lock.StateUnknown, lock.StateTombstone} {
		if s.String() == f.state {
			filter.State = s
			return filter, nil
		}
		names = append(names, s.String())
	}
	return filter, &usageError{fmt.Errorf("--state must be one of %s", strings.Join(names, ", "))}
}

func (p *program) listClaims(ctx context.Context, flags *listFlags) error {
	c, err := config.Load(flags.options(p.env))
	if err != nil {
		return err
	}
	filter, err := flags.filter(c.Namespace)
	if err != nil {
		return err
	}
	var records []lock.Record
	more := false
	err = withStore(ctx, c, func(ctx context.Context, store backend) (err error) {
		records, more, err = find(ctx, store, filter, flags)
		return err
	})
	if err != nil {
		return err
	}
	if flags.asJSON {
		out := json.NewEncoder(p.stdout)
		for i := range records {
			if err := out.Encode(claimOf(&records[i], time.Now())); err != nil {
				return err
			}
		}
	} else if err := p.printClaims(records); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(p.stderr, "there are more; --limit %d lists up to %d\n", 10*flags.limit, 10*flags.limit)
	}
	return nil
}

// find asks page by page. An exact key can't be asked for, since the scope that
// its digest goes with is not known: the few that hold it are looked through.
func find(ctx context.Context, store lock.Catalog, filter lock.Filter, flags *listFlags) (records []lock.Record, more bool, err error) {
	const page = 500
	var after lock.Cursor
	for {
		found, err := store.List(ctx, filter, after, page)
		if err != nil {
			return nil, false, err
		}
		for _, r := range found {
			if flags.key == "" || r.Text == flags.key {
				records = append(records, r)
			}
			after = lock.Cursor{Scope: r.Scope, Digest: r.Digest}
		}
		if len(records) > flags.limit {
			return records[:flags.limit], true, nil
		}
		if len(found) < page {
			return records, false, nil
		}
	}
}

func (p *program) printClaims(records []lock.Record) error {
	if len(records) == 0 {
		_, err := fmt.Fprintln(p.stdout, "no claims")
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCOPE\tEVENT KEY\tSTATE\tATTEMPT\tFIRST SEEN\tLAST CHANGE\tANSWER\tTAGS")
	for i := range records {
		r := &records[i]
		answer := "-"
		if r.AnswerStatus != 0 {
			answer = fmt.Sprint(r.AnswerStatus)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.Scope, shortened(r.Text, 60), stateText(r), r.Attempt,
			ago(r.FirstSeen), ago(r.Written), answer, orDash(shortened(printable(strings.Join(r.Tags, " ")), 60)))
	}
	return table.Flush()
}

// stateText is a record's state, or what it is instead of having one.
func stateText(r *lock.Record) string {
	if r.Role == lock.RoleAlias {
		return "alias"
	}
	return r.State.String()
}

func shortened(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}

// ago writes an age as people say it.
func ago(age time.Duration) string { return span(age) + " ago" }

func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
