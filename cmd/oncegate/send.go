package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/errgroup"

	"oncegate/internal/config"
	"oncegate/internal/strictyaml"
)

// Bounds of what one `send` sends.
const (
	maxSent     = 10_000
	maxParallel = 256
)

type sendFlags struct {
	configFlags
	url, route, provider, event string
	key, makeKey, body          string
	headers                     []string
	params                      map[string]string
	count, parallel             int
	timeout                     time.Duration
	unsigned, dryRun            bool
}

func (p *program) sendCommand() *cobra.Command {
	var flags sendFlags
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send a signed sample of a provider's to a route or an app",
		Long: `send signs the provider's sample with the route's secret, sends it, and prints
what was answered. With --count it sends the same event again and again, as
providers do; each time it is run it makes another event, unless --event names
one. Without --url it sends to the route, where this configuration listens.

  oncegate send --route stripe --count 20 --parallel 20
  STRIPE_WEBHOOK_SECRET=whsec_... oncegate send --provider stripe --url http://127.0.0.1:8000/stripe/webhook

A route of a sender that no preset knows has no sample; --body FILE is signed and
sent there (with any provider in place of its sample), as it is each time.

With --dry-run it sends nothing and prints the first delivery as a raw request,
which explain reads.

PayPal, Amazon SNS, Plaid and Pub/Sub sign with a private key of their own, so a
test route has to trust another: --make-key FILE makes one, test_key on the route
names it, and send signs with it (where the route knows its public part only,
--key names it). --unsigned sends a sample as it is; an enforced route refuses it.

  oncegate send --route paypal --make-key test.pem

It ends with 0 where every delivery was answered 2xx.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.send(cmd.Context(), &flags) },
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.url, "url", "", "where to send to: an http or https `URL`")
	cmd.Flags().StringVar(&flags.route, "route", "", "the route's `name` in the configuration")
	cmd.Flags().StringVar(&flags.provider, "provider", "", "a provider, without a configuration; the secret is `NAME`_WEBHOOK_SECRET in the environment")
	cmd.Flags().StringVar(&flags.event, "event", "", "the event's `ID`, instead of a new one")
	cmd.Flags().IntVarP(&flags.count, "count", "n", 1, "how many deliveries of the event are sent")
	cmd.Flags().IntVar(&flags.parallel, "parallel", 1, "how many of them at a time")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", time.Minute, "how long one delivery waits for its answer")
	cmd.Flags().StringVar(&flags.body, "body", "", "send what is in this `file`, or - for standard input, in place of a sample")
	cmd.Flags().StringArrayVarP(&flags.headers, "header", "H", nil, "with --body: a header of its own, as `NAME:VALUE`; without one, Content-Type: application/json")
	cmd.Flags().StringVar(&flags.key, "key", "", "sign with the private key in this `file`, in PEM, where the route checks with a public one")
	cmd.Flags().StringVar(&flags.makeKey, "make-key", "", "make a private key for a test route, write it to this new `file`, and send nothing")
	cmd.Flags().StringToStringVar(&flags.params, "param", nil, "with --provider: what it needs beside the secret, as `NAME=VALUE`, such as webhook_id=...")
	cmd.Flags().Lookup("param").DefValue = "" // else the help shows an empty list as the default
	cmd.Flags().BoolVar(&flags.unsigned, "unsigned", false, "send without a signature")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "send nothing; print the first delivery")
	return cmd
}

func (p *program) send(ctx context.Context, flags *sendFlags) error {
	if flags.count < 1 || flags.count > maxSent || flags.parallel < 1 || flags.parallel > maxParallel {
		return &usageError{fmt.Errorf("--count must be between 1 and %d, --parallel between 1 and %d", maxSent, maxParallel)}
	}
	if flags.makeKey != "" {
		return p.makeTestKey(flags)
	}
	var target *url.URL
	if flags.url != "" {
		var err error
		if target, err = targetOf(flags.url); err != nil {
			return err
		}
	}
	c, route, err := p.sendRoute(flags, target)
	if err != nil {
		return err
	}
	if target == nil {
		target = &url.URL{Scheme: "http", Host: reachable(c.Listen), Path: route.Path}
	}
	s, err := p.sampler(flags, route, target)
	if err != nil {
		return err
	}
	s.unsigned = flags.unsigned
	if flags.key != "" {
		if err := p.signWith(s, flags.key); err != nil {
			return err
		}
	}
	if flags.dryRun {
		return p.printDelivery(s)
	}
	answers, err := sendAll(ctx, s, target, flags)
	if err != nil {
		return err
	}
	return p.printAnswers(s.key, target, answers)
}

// sampler makes the deliveries that the flags ask for.
func (p *program) sampler(flags *sendFlags, route *config.Route, target *url.URL) (*sampler, error) {
	switch {
	case flags.body == "" && len(flags.headers) > 0:
		return nil, &usageError{errors.New("--header has no meaning without --body")}
	case flags.body == "":
		return newSampler(route, target, flags.event)
	case flags.event != "":
		return nil, &usageError{errors.New("--event has no meaning with --body, which is sent as it is")}
	}
	body, err := p.readFile(flags.body)
	if err != nil {
		return nil, fmt.Errorf("--body: %w", err)
	}
	header := map[string]string{"Content-Type": "application/json"}
	for _, line := range flags.headers {
		name, value, ok := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &usageError{errors.New("--header must be NAME: VALUE")}
		}
		header[http.CanonicalHeaderKey(name)] = value
	}
	return ownSampler(route, target, header, string(body))
}

// targetOf reads the address to send to. Credentials in it would end up in
// shells' histories and logs.
func targetOf(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, &usageError{errors.New("--url must be an http:// or https:// URL, without a user")}
	}
	u.Fragment = ""
	return u, nil
}

// sendRoute finds the route to send as: one of the configuration's, or one made
// of a provider alone.
func (p *program) sendRoute(flags *sendFlags, target *url.URL) (*config.Config, *config.Route, error) {
	o := flags.options(p.env)
	o.Instead = "do without one: --provider stripe --url http://127.0.0.1:8080/stripe/webhook"
	switch {
	case flags.provider != "" && flags.route != "":
		return nil, nil, &usageError{errors.New("--route and --provider say the same thing in two ways; give one")}
	case flags.provider != "" && target == nil:
		return nil, nil, &usageError{errors.New("--provider needs --url, where to send to")}
	case flags.provider != "":
		o.Path = ""
		o.Flags.Upstream = "http://127.0.0.1:8000"       // asked for by the configuration, and not used
		o.Flags.Routes = []string{flags.provider + "=/"} // nothing is received: any form of any path can be sent to
		o.Flags.Params = flags.params
	}
	c, err := config.Load(o)
	if err != nil {
		return nil, nil, asProvider(err)
	}
	name := flags.route
	if name == "" && len(c.Routes) == 1 {
		return c, c.Routes[0], nil
	}
	for _, r := range c.Routes {
		if r.Name == name {
			return c, r, nil
		}
	}
	if name == "" {
		return nil, nil, &usageError{fmt.Errorf("--route must say which of the routes: %s", routeNames(c))}
	}
	return nil, nil, fmt.Errorf("route %q: %w; there are: %s", name, errNotFound, routeNames(c))
}

// asProvider names the flag that was given, where --provider was made a route.
func asProvider(err error) error {
	var faults strictyaml.Faults
	if errors.As(err, &faults) {
		for i := range faults {
			if name, ok := strings.CutPrefix(faults[i].Field, "--route "); ok {
				faults[i].Field = "--provider " + name
			}
		}
	}
	return err
}

func routeNames(c *config.Config) string {
	names := make([]string, len(c.Routes))
	for i, r := range c.Routes {
		names[i] = r.Name
	}
	return strings.Join(names, ", ")
}

// sendAll sends the event's deliveries. The error is about sending at all; what
// became of each delivery is its answer.
func sendAll(ctx context.Context, s *sampler, target *url.URL, flags *sendFlags) ([]answer, error) {
	client := newClient(flags.timeout)
	answers := make([]answer, flags.count)
	var group errgroup.Group
	group.SetLimit(flags.parallel)
	for i := range answers {
		group.Go(func() error {
			d, err := s.signed(i, time.Now())
			if err != nil {
				return err
			}
			answers[i] = deliver(ctx, client, target, d)
			return nil
		})
	}
	return answers, group.Wait()
}

// printAnswers prints how many answers there were of each kind.
func (p *program) printAnswers(key string, target *url.URL, answers []answer) error {
	of := "event " + key
	if key == "" {
		of = "the sample, in which the route reads no event key,"
	}
	fmt.Fprintf(p.stdout, "%s of %s to %s\n\n", countDeliveries(len(answers)), of, target.Redacted())
	table := tabwriter.NewWriter(p.stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "DELIVERIES\tSTATUS\tRESULT\tSLOWEST")
	failed := 0
	for _, g := range grouped(answers) {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", g.count, g.status, g.result, g.slowest.Round(time.Millisecond))
		if !g.good {
			failed += g.count
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s not answered 2xx", countDeliveries(failed))
	}
	return nil
}

func countDeliveries(n int) string {
	if n == 1 {
		return "1 delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}

// newClient returns a client that sends each request once: it keeps no
// connection, since requests on a kept one may silently be sent again, and it
// follows no redirect.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
