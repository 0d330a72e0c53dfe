package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/operator"
	"oncegate/lock"
)

type showFlags struct {
	deskFlags
	scope string
	body  bool
}

func (p *program) claimsShowCommand() *cobra.Command {
	var flags showFlags
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show the life of one event",
		Long: `show says what is known of the event with this key: what became of it, each of its
deliveries in the order in which they came, what operators decided, what the app
answered to each attempt, and what is answered. It ends with 6 where nothing is
known of it. Bodies are part of it with --body only.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.showClaim(cmd.Context(), &flags, args[0]) },
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.scope, "scope", "", "the claim's `scope`, where several routes know the key")
	cmd.Flags().BoolVar(&flags.body, "body", false, "the bodies of answers too, as far as they are kept")
	return cmd
}

func (p *program) showClaim(ctx context.Context, flags *showFlags, key string) error {
	var lives []*operator.Life
	err := p.withDesk(ctx, &flags.deskFlags, func(ctx context.Context, d desk) (err error) {
		lives, err = d.ShowKey(ctx, flags.scope, key, flags.body)
		return err
	})
	if err = ofDesk(err); err != nil {
		return fmt.Errorf("event %s: %w; `oncegate claims ls --part TEXT` looks for a part of a key", printable(key), err)
	}
	if flags.asJSON {
		return printJSON(p, lives)
	}
	for i, life := range lives {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		if err := p.printLife(life); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printLife(life *operator.Life) error {
	c := &life.Claim
	fmt.Fprintf(p.stdout, "event %s of %s: %s\n\n", orDash(printable(c.Key)), c.Scope, verdict(c))
	table := tabwriter.NewWriter(p.stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  %s\tfirst delivery\n", since(c.FirstSeen))
	if c.LastSeen.After(c.FirstSeen) {
		fmt.Fprintf(table, "  %s\tlatest delivery that changed something\n", since(c.LastSeen))
	}
	if c.State != operator.Absent {
		fmt.Fprintf(table, "  %s\t%s\n", since(c.Changed), lastChange(c))
	}
	for _, line := range ahead(c) {
		fmt.Fprintf(table, "  %s\t%s\n", line[0], line[1])
	}
	fmt.Fprintln(table)
	for _, tag := range c.Tags {
		name, value, _ := strings.Cut(tag, "=")
		fmt.Fprintf(table, "  tag %s\t%s\n", printable(name), printable(value))
	}
	if c.Marks != nil {
		fmt.Fprintf(table, "  marks\t%s\n", strings.Join(c.Marks, ", "))
	}
	if c.RequestKept {
		fmt.Fprintln(table, "  request\tkept")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printTimeline(p.stdout, life); err != nil {
		return err
	}
	if err := printAppAnswers(p.stdout, life); err != nil {
		return err
	}
	return printAnswer(p.stdout, life.Answer)
}

// verdict says in words what a claim means for the event.
func verdict(c *operator.Claim) string {
	switch c.State {
	case operator.Absent:
		return "there is no claim: it was only observed, or its claim is past retention"
	case "alias":
		return "another name of the event with digest " + c.Names
	case lock.StateRunning.String():
		return fmt.Sprintf("attempt %d is running", c.Attempt)
	case lock.StateDone.String():
		return "done; every later delivery gets the stored answer"
	case lock.StateReleased.String():
		return "released; the next delivery is forwarded"
	case lock.StateUnknown.String():
		return fmt.Sprintf("unknown; attempt %d may have taken effect", c.Attempt)
	case lock.StateTombstone.String():
		return "forgotten; the next delivery is forwarded as if it were the first"
	}
	return c.State
}

// lastChange says what the claim's last write was.
func lastChange(c *operator.Claim) string {
	switch c.State {
	case "alias":
		return "written"
	case lock.StateRunning.String():
		return fmt.Sprintf("attempt %d began, or renewed its lease", c.Attempt)
	}
	text := fmt.Sprintf("attempt %d: %s", c.Attempt, c.State)
	if c.Reason != "" {
		text += ", " + printable(reasons(c.Reason))
	}
	return text
}

// reasons says a reason in words.
func reasons(reason string) string {
	switch reason {
	case lock.ReasonAnswered:
		return "by the app's answer"
	case lock.ReasonUnsent:
		return "since nothing was sent to the app"
	case lock.ReasonBroken:
		return "since the connection broke after the request was sent"
	case lock.ReasonTimeout:
		return "since the app gave no complete answer in time"
	case lock.ReasonLapsed:
		return "since its lease ran out: the process was lost"
	case lock.ReasonShutdown:
		return "since oncegate was stopped"
	case lock.ReasonWitness:
		return "by a witness's word"
	}
	return reason
}

// ahead says what will happen by itself.
func ahead(c *operator.Claim) (lines [][2]string) {
	for _, f := range []struct {
		left *float64
		what string
	}{
		{c.LeaseLeft, "the lease runs out, unless it is renewed"},
		{c.MayRunFor, "the app can't be working on it any more"},
		{c.KeptFor, "the record is removed; a delivery after that is a new event"},
	} {
		if f.left != nil && (*f.left != 0 || f.left == c.KeptFor) {
			lines = append(lines, [2]string{due(time.Duration(*f.left * float64(time.Second))), f.what})
		}
	}
	return lines
}

func due(left time.Duration) string {
	if left < 0 {
		return ago(-left)
	}
	return "in " + span(left)
}
