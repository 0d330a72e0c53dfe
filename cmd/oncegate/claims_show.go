package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
	"oncegate/lock"
)

type showFlags struct {
	configFlags
	scope        string
	asJSON, body bool
}

func (p *program) claimsShowCommand() *cobra.Command {
	var flags showFlags
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show what is known of one event",
		Long: `show says what is known of the event with this key, and in what order it came
about. It ends with 6 where nothing is known of it. The body of the stored answer
is printed with --body only.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.showClaim(cmd.Context(), &flags, args[0]) },
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.scope, "scope", "", "the claim's `scope`, where several routes know the key")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&flags.body, "body", false, "print the body of the stored answer too")
	return cmd
}

func (p *program) showClaim(ctx context.Context, flags *showFlags, key string) error {
	if flags.asJSON && flags.body {
		return &usageError{errors.New("--json and --body exclude each other")}
	}
	c, err := config.Load(flags.options(p.env))
	if err != nil {
		return err
	}
	scope, text, cut := strings.Cut(key, ":")
	keys := keysOf(c, flags.scope, key)
	if cut && flags.scope == "" {
		keys = append(keys, lock.KeyOf(c.Namespace, scope, text)) // as Oncegate-Event and the logs write it
	}
	var known []lock.Record
	err = withStore(ctx, c, func(ctx context.Context, store backend) error {
		records, err := store.Read(ctx, keys)
		known = slices.DeleteFunc(records, func(r lock.Record) bool { return !r.Exists() })
		return err
	})
	switch {
	case err != nil:
		return err
	case len(known) == 0:
		return fmt.Errorf("event %s: %w; `oncegate claims ls --part TEXT` looks for a part of a key", printable(key), errNotFound)
	case flags.asJSON:
		out := json.NewEncoder(p.stdout)
		for i := range known {
			if err := out.Encode(claimOf(&known[i], time.Now())); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range known {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		if err := p.printClaim(&known[i], flags.body); err != nil {
			return err
		}
	}
	return nil
}

// keysOf are the records that a key can stand for: one in each scope.
func keysOf(c *config.Config, scope, text string) (keys []lock.Key) {
	if scope != "" {
		return []lock.Key{lock.KeyOf(c.Namespace, scope, text)}
	}
	var scopes []string
	for _, r := range c.Routes {
		if !slices.Contains(scopes, r.Scope) {
			scopes = append(scopes, r.Scope)
			keys = append(keys, lock.KeyOf(c.Namespace, r.Scope, text))
		}
	}
	return keys
}

func (p *program) printClaim(r *lock.Record, body bool) error {
	fmt.Fprintf(p.stdout, "event %s of %s: %s\n\n", r.Text, r.Scope, verdict(r))
	table := tabwriter.NewWriter(p.stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  %s\tfirst delivery\n", ago(r.FirstSeen))
	if r.LastSeen < r.FirstSeen {
		fmt.Fprintf(table, "  %s\tlatest delivery that changed something\n", ago(r.LastSeen))
	}
	fmt.Fprintf(table, "  %s\t%s\n", ago(r.Written), lastChange(r))
	for _, line := range ahead(r) {
		fmt.Fprintf(table, "  %s\t%s\n", line[0], line[1])
	}
	fmt.Fprintln(table)
	for _, tag := range r.Tags {
		name, value, _ := strings.Cut(tag, "=")
		fmt.Fprintf(table, "  tag %s\t%s\n", printable(name), printable(value))
	}
	if names := marks(r.Mark); names != nil {
		fmt.Fprintf(table, "  marks\t%s\n", strings.Join(names, ", "))
	}
	if r.Request != nil {
		fmt.Fprintf(table, "  request\tkept, %d bytes\n", len(r.Request))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return p.printAnswer(r, body)
}

// printAnswer prints the stored answer: its status and the names of its headers,
// and where it is wanted its body.
func (p *program) printAnswer(r *lock.Record, body bool) error {
	if r.AnswerStatus == 0 {
		return nil
	}
	a, err := r.StoredAnswer()
	if err != nil {
		return err
	}
	kept := fmt.Sprintf("%d bytes", len(a.Body))
	if a.Stub {
		kept = "body too large to be kept"
	}
	fmt.Fprintf(p.stdout, "\n  answer %d, %s\n", a.Status, kept)
	for _, l := range a.Header {
		fmt.Fprintf(p.stdout, "    %s: %s\n", printable(l.Name), printable(l.Value))
	}
	if !body {
		return nil
	}
	_, err = fmt.Fprintf(p.stdout, "\n%s\n", a.Body)
	return err
}

// verdict says in words what a record means for the event.
func verdict(r *lock.Record) string {
	if r.Role == lock.RoleAlias {
		return "another name of the event with digest " + r.Names.String()
	}
	switch r.State {
	case lock.StateRunning:
		return fmt.Sprintf("attempt %d is running", r.Attempt)
	case lock.StateDone:
		return "done; every later delivery gets the stored answer"
	case lock.StateReleased:
		return "released; the next delivery is forwarded"
	case lock.StateUnknown:
		return fmt.Sprintf("unknown; attempt %d may have taken effect", r.Attempt)
	case lock.StateTombstone:
		return "forgotten; the next delivery is forwarded as if it were the first"
	}
	return r.State.String()
}

// lastChange says what the record's last write was.
func lastChange(r *lock.Record) string {
	if r.Role == lock.RoleAlias {
		return "written"
	}
	if r.State == lock.StateRunning {
		return fmt.Sprintf("attempt %d began, or renewed its lease", r.Attempt)
	}
	text := fmt.Sprintf("attempt %d: %s", r.Attempt, r.State)
	if r.Reason != "" {
		text += ", " + reasons(r.Reason)
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
	}
	return reason
}

// ahead says what will happen by itself.
func ahead(r *lock.Record) (lines [][2]string) {
	if r.State == lock.StateRunning {
		lines = append(lines, [2]string{due(r.Lease), "the lease runs out, unless it is renewed"})
	}
	if (r.State == lock.StateRunning || r.State == lock.StateUnknown) && r.RunsUntil > 0 {
		lines = append(lines, [2]string{due(r.RunsUntil), "the app can't be working on it any more"})
	}
	if r.Expires() {
		lines = append(lines, [2]string{due(r.Retain), "the record is removed; a delivery after that is a new event"})
	}
	return lines
}

func due(left time.Duration) string {
	if left < 0 {
		return ago(-left)
	}
	return "in " + span(left)
}
