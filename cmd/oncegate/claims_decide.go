package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"oncegate/internal/operator"
	"oncegate/lock"
)

// verbFlags are those of the commands that decide.
type verbFlags struct {
	deskFlags
	filter     filterFlags
	reason, as string
	yes, now   bool
	status     int
	bodyFile   string
}

// verbCommands are one command for each of the operators' verbs.
func (p *program) verbCommands() (commands []*cobra.Command) {
	for _, v := range []struct {
		verb        lock.Verb
		short, long string
	}{
		{lock.VerbDone, "Say that an event has had its effect", `done says that an event has had its effect: its claim was unknown or released, and
every later delivery gets --status (200) and --body-file as its answer.`},
		{lock.VerbReopen, "Let the next delivery of an event run", `reopen lets the next delivery of an event run: its claim was unknown, released or
done. While the app may still be working on it, that is refused; --now insists.`},
		{lock.VerbRerun, "Forward the kept request of an event now", `rerun forwards the kept request of an event now, signed anew, and says what the app
answered. It is refused where the request was not kept (see the setting record).
A running oncegate does it: the one at --admin, else the one that the
configuration describes.`},
		{lock.VerbRelease, "Cut an attempt that hangs", `release cuts an attempt that hangs: its claim becomes unknown, and the route's
on_unknown decides what follows, once the app can't be working on it any more.
It says nothing of the effect: should the attempt get a 2xx after all, the event
is done. Where you know the effect, say done or reopen next.`},
		{lock.VerbForget, "Forget an event", `forget removes all that is known of an event that is done or released, evidence
included, but for the digest of its key and the number of its attempts. The next
delivery is forwarded.`},
	} {
		var flags verbFlags
		cmd := &cobra.Command{
			Use:   v.verb.String() + " [KEY]",
			Short: v.short,
			Long: v.long + `

A reason is required. It is kept with the claim, in its evidence and in the log,
with the name of who decides: the user of this process, or --as.

With filters instead of a key it first shows what it would be about, and changes
nothing; --yes decides. A claim that changes in between is left alone, and told.`,
			Args: cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return p.decide(cmd.Context(), v.verb, &flags, args) },
		}
		flags.add(cmd)
		flags.filter.add(cmd)
		own := cmd.Flags()
		own.StringVar(&flags.reason, "reason", "", "why this is decided; required")
		own.StringVar(&flags.as, "as", "", "the `name` of who decides")
		own.BoolVar(&flags.yes, "yes", false, "decide about all that the filters select")
		if v.verb == lock.VerbReopen || v.verb == lock.VerbRerun {
			own.BoolVar(&flags.now, "now", false, "although the app may still be working on it")
		}
		if v.verb == lock.VerbDone {
			own.IntVar(&flags.status, "status", 200, "the status that later deliveries get: a 2xx")
			own.StringVar(&flags.bodyFile, "body-file", "", "a `file` with the body that they get")
		}
		commands = append(commands, cmd)
	}
	return commands
}

// errNotAll says that a decision does not stand for every claim.
var errNotAll = errors.New("not everything was decided")

func (p *program) decide(ctx context.Context, verb lock.Verb, flags *verbFlags, args []string) error {
	if len(args) == 1 {
		if args[0] == "" {
			return &usageError{fmt.Errorf("KEY %w", errEmpty)}
		}
		if flags.filter.query.Key != "" {
			return &usageError{errors.New("a KEY and --key exclude each other")}
		}
		flags.filter.query.Key = args[0]
	}
	decision := operator.Decision{Verb: verb.String(), Who: whoIs(flags.as), Reason: flags.reason, Now: flags.now, Status: flags.status}
	switch {
	case flags.reason == "":
		return &usageError{errors.New("--reason is required: it is kept with the claim")}
	case !flags.filter.any():
		return &usageError{errors.New("name an event key, or filters that select claims")}
	}
	if flags.bodyFile != "" {
		body, err := os.ReadFile(flags.bodyFile)
		if err != nil {
			return &usageError{fmt.Errorf("--body-file: %w", err)}
		}
		decision.Body = body
	}
	q, err := flags.filter.ask(operator.MostDecided)
	if err != nil {
		return err
	}
	if verb == lock.VerbRerun {
		if err := p.throughAPI(&flags.deskFlags); err != nil {
			return err
		}
	}
	return p.withDesk(ctx, &flags.deskFlags, func(ctx context.Context, d desk) error {
		page, err := d.Find(ctx, q)
		switch {
		case err != nil:
			return ofDesk(err)
		case len(page.Claims) == 0 && len(args) == 1:
			return fmt.Errorf("event %s: %w: no such claim; `oncegate claims ls --part TEXT` looks for a part of a key", printable(args[0]), errNotFound)
		case len(page.Claims) == 0:
			return fmt.Errorf("%w: no claim is selected", errNotFound)
		case len(page.Claims) > 1 && len(args) == 1:
			return &usageError{fmt.Errorf("%d scopes know this key; say which with --scope", len(page.Claims))}
		case len(args) == 0 && !flags.yes:
			return p.dryRun(verb, page, flags.asJSON)
		}
		return p.decideOn(ctx, d, decision, page)
	})
}

// dryRun shows what a decision would be about.
func (p *program) dryRun(verb lock.Verb, page operator.Page, asJSON bool) error {
	if asJSON {
		return printJSON(p, page.Claims)
	}
	if err := p.printClaims(page.Claims); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stderr, "nothing was changed; --yes says %s of %s\n", verb, count(len(page.Claims), "claim"))
	return err
}

func (p *program) decideOn(ctx context.Context, d desk, decision operator.Decision, page operator.Page) error {
	for i := range page.Claims {
		decision.Claims = append(decision.Claims, page.Claims[i].Ref())
	}
	outcomes, err := d.Decide(ctx, decision)
	if err != nil {
		return ofDesk(err)
	}
	for i := range outcomes {
		if err := p.printOutcome(&outcomes[i], &page.Claims[i]); err != nil {
			return err
		}
	}
	if page.Next != "" {
		fmt.Fprintf(p.stderr, "there are more than %d; say it again for the others\n", operator.MostDecided)
	}
	bad := 0
	for i := range outcomes {
		if outcomes[i].Code != "" {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%w: %d of %d", errNotAll, bad, len(outcomes))
	}
	return nil
}

func (p *program) printOutcome(o *operator.Outcome, c *operator.Claim) error {
	text := "now " + o.State
	switch {
	case o.Run != nil:
		text = fmt.Sprintf("attempt %d ended as %s, status %d", o.Run.Attempt, o.Run.Result, o.Run.Status)
	case o.Code != "" && o.Error != "":
		text = printable(o.Error) // which says what the code says
	case o.Code != "":
		text = o.Code
	}
	if o.Code == "" && o.Error != "" {
		text += ": " + printable(o.Error)
	}
	_, err := fmt.Fprintf(p.stdout, "%s of %s: %s\n", cmp.Or(printable(c.Key), "-"), c.Scope, text)
	return err
}
