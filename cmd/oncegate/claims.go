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

	"oncegate/internal/operator"
	"oncegate/internal/strictyaml"
	"oncegate/internal/telemetry"
)

func (p *program) claimsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "Look at what is known of events, and decide",
		Long: `claims looks at the records in the store: which events were seen, what became of
them, and what was answered; and lets an operator decide. It goes to the store
itself, and works while oncegate runs and while it doesn't; with --admin it asks a
running one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.claimsListCommand(), p.claimsShowCommand())
	cmd.AddCommand(p.verbCommands()...)
	return cmd
}

// filterFlags select claims.
type filterFlags struct {
	query       operator.Query
	since, idle string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*filled)(&f.query.Scope), "scope", "only claims of this `scope`: the route's name, unless it says otherwise")
	flags.Var((*filled)(&f.query.State), "state", "only claims in this `state`: running, done, released, unknown or tombstone")
	flags.Var((*filled)(&f.query.Key), "key", "only the claims on this event `key`")
	flags.Var((*filled)(&f.query.Part), "part", "only claims whose event key holds this `text`")
	flags.Var((*filled)(&f.query.Tag), "tag", "only claims with this tag, as `name=value`")
	flags.Var((*filled)(&f.query.Result), "result", "only events of which a delivery ended with this result `word`, as far as evidence goes")
	flags.BoolVar(&f.query.Unfinished, "unfinished", false, "only claims that are not done and whose sender has given up")
	complete(cmd, "state", "running", "done", "released", "unknown", "tombstone")
	var words []string
	for _, word := range telemetry.Results() {
		words = append(words, string(word))
	}
	complete(cmd, "result", words...)
	flags.Var((*filled)(&f.since), "seen-within", "only what a delivery changed within this `time`: 2h, 7d")
	flags.Var((*filled)(&f.idle), "not-seen-for", "only what no delivery changed for this `time`")
}

// filled is the text of a filter. An empty one, from a shell's variable that is not
// set, would select everything.
type filled string

func (f *filled) Set(text string) error {
	if text == "" {
		return errEmpty
	}
	*f = filled(text)
	return nil
}

func (f *filled) String() string { return string(*f) }

// Type is what help calls the value where its description names none.
func (f *filled) Type() string { return "string" }

var errEmpty = errors.New("is empty; leave it out, or say what is to be selected")

// complete lets shells complete a flag's value.
func complete(cmd *cobra.Command, flag string, words ...string) {
	// It fails for a flag that is not there, or has a completion already.
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// ask completes the query.
func (f *filterFlags) ask(limit int) (operator.Query, error) {
	q := f.query
	q.Limit = limit
	for _, age := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--seen-within", f.since, &q.SeenWithin}, {"--not-seen-for", f.idle, &q.NotSeenFor}} {
		if age.text == "" {
			continue
		}
		d, err := strictyaml.ParseDuration(age.text)
		if err != nil {
			return q, &usageError{fmt.Errorf("%s: %w", age.flag, err)}
		}
		if d == 0 {
			return q, &usageError{fmt.Errorf("%s: %w", age.flag, errEmpty)}
		}
		*age.into = d
	}
	return q, nil
}

// any reports whether something is selected.
func (f *filterFlags) any() bool { return *f != filterFlags{} }

type listFlags struct {
	deskFlags
	filter filterFlags
	limit  int
}

func (p *program) claimsListCommand() *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List claims",
		Long: `ls lists claims, at most --limit of them, ordered by scope. Neither bodies nor
secrets are part of it.

  oncegate claims ls --tag order=4471
  oncegate claims ls --state unknown
  oncegate claims ls --unfinished`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listClaims(cmd.Context(), &flags) },
	}
	flags.add(cmd)
	flags.filter.add(cmd)
	cmd.Flags().IntVar(&flags.limit, "limit", 50, "how many are listed at most")
	return cmd
}

func (p *program) listClaims(ctx context.Context, flags *listFlags) error {
	q, err := flags.filter.ask(flags.limit)
	if err != nil {
		return err
	}
	var page operator.Page
	err = p.withDesk(ctx, &flags.deskFlags, func(ctx context.Context, d desk) (err error) {
		page, err = d.Find(ctx, q)
		return ofDesk(err)
	})
	if err != nil {
		return err
	}
	if flags.asJSON {
		err = printJSON(p, page.Claims)
	} else {
		err = p.printClaims(page.Claims)
	}
	if err == nil && page.Next != "" {
		fmt.Fprintln(p.stderr, "there are more; --limit lists up to", operator.MostListed)
	}
	return err
}

// printJSON prints one object a line.
func printJSON[T any](p *program, list []T) error {
	out := json.NewEncoder(p.stdout)
	for i := range list {
		if err := out.Encode(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printClaims(claims []operator.Claim) error {
	if len(claims) == 0 {
		_, err := fmt.Fprintln(p.stdout, "no claims")
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCOPE\tEVENT KEY\tSTATE\tATTEMPT\tFIRST SEEN\tLAST CHANGE\tANSWER\tTAGS")
	for i := range claims {
		c := &claims[i]
		answer := "-"
		if c.AnswerStatus != 0 {
			answer = fmt.Sprint(c.AnswerStatus)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.Scope, orDash(shortened(printable(c.Key), 60)), c.State, c.Attempt,
			since(c.FirstSeen), since(c.Changed), answer, orDash(shortened(printable(strings.Join(c.Tags, " ")), 60)))
	}
	return table.Flush()
}

func shortened(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}

// since writes a moment as people say it.
func since(at time.Time) string { return ago(time.Since(at)) }

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
