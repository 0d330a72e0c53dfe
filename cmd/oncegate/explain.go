package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/verify"
)

type explainFlags struct {
	configFlags
	route, at string
}

func (p *program) explainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Say what a route makes of a request in a file",
		Long: `explain reads one raw HTTP request from a file, or from - for standard input, and
says what a route makes of it: which bytes were signed, whether a signature fits,
and which event key and tags it carries. Nothing is sent, claimed or stored.

The time of the signature is held against --at, or against now.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.explain(cmd.Context(), &flags, args[0])
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.route, "route", "", "the route's `name`; without it the one whose path it is")
	cmd.Flags().StringVar(&flags.at, "at", "", "when the request arrived, as in 2026-01-02T15:04:05Z")
	return cmd
}

func (p *program) explain(ctx context.Context, flags *explainFlags, file string) error {
	arrived := time.Now()
	if flags.at != "" {
		var err error
		if arrived, err = time.Parse(time.RFC3339, flags.at); err != nil {
			return &usageError{errors.New("--at must be a time such as 2026-01-02T15:04:05Z")}
		}
	}
	c, err := config.Load(flags.options(p.env))
	if err != nil {
		return err
	}
	d, err := p.readDelivery(file, arrived)
	if err != nil {
		return err
	}
	route, err := routeFor(c, flags.route, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "route %s, %s, %s\n", route.Name, orDash(route.Provider), route.Mode)
	fmt.Fprintf(p.stdout, "%s %s, body of %d bytes\n", printable(d.Method), printable(d.Target), len(d.Body))
	refused := p.explainSignature(ctx, route, d)
	unkeyed := p.explainKey(route, d)
	if err := errors.Join(refused, unkeyed); err != nil {
		return fmt.Errorf("the route would not claim this delivery: %w", err)
	}
	return nil
}

// maxRequestFile bounds a request that is explained.
const maxRequestFile = 64 << 20

// readDelivery reads a raw request. Line ends of a file that an editor wrote are
// put right in the head; the body is taken as it is.
func (p *program) readDelivery(file string, arrived time.Time) (*delivery.Delivery, error) {
	in := p.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxRequestFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxRequestFile {
		return nil, fmt.Errorf("the request is larger than %d bytes", maxRequestFile)
	}
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		head, body, _ = bytes.Cut(raw, []byte("\n\n"))
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(slices.Concat(head, []byte("\r\n\r\n")))))
	if err != nil {
		return nil, fmt.Errorf("%s holds no raw HTTP request: %w", printable(file), err)
	}
	d := &delivery.Delivery{
		Method: request.Method, Target: request.RequestURI, Host: request.Host,
		Header: request.Header, Body: body, Arrived: arrived,
	}
	length := request.ContentLength
	if length < 0 || request.Header.Get("Content-Length") == "" {
		return d, nil
	}
	switch {
	case int64(len(body)) == length+1 && body[length] == '\n':
		d.Body = body[:length] // an editor's
	case int64(len(body)) != length:
		return nil, fmt.Errorf("%s: Content-Length says %d bytes, and the body has %d: it is not what was sent", printable(file), length, len(body))
	}
	return d, nil
}

func routeFor(c *config.Config, name string, d *delivery.Delivery) (*config.Route, error) {
	for _, r := range c.Routes {
		if r.Name == name || name == "" && r.Path == d.RawPath() {
			return r, nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("route for the path %s: %w; --route says which of: %s", printable(d.RawPath()), errNotFound, routeNames(c))
	}
	return nil, fmt.Errorf("route %q: %w; there are: %s", name, errNotFound, routeNames(c))
}

func (p *program) explainSignature(ctx context.Context, route *config.Route, d *delivery.Delivery) error {
	if route.Verifier == nil {
		fmt.Fprintln(p.stdout, "signature: this route verifies none")
		return nil
	}
	trace := route.Verifier.Explain(ctx, d)
	for _, check := range trace.Checks {
		fmt.Fprintf(p.stdout, "signature in %s\n", check.Place)
		fmt.Fprintf(p.stdout, "  signed text   %s\n", shortened(printable(string(check.Signed)), 300))
		for _, given := range check.Given {
			fmt.Fprintf(p.stdout, "  given         %s\n", shortened(printable(given), 100))
		}
		for _, computed := range check.Computed {
			fmt.Fprintf(p.stdout, "  computed      %s... (its first 8 characters)\n", computed)
		}
		if check.URL != "" {
			fmt.Fprintf(p.stdout, "  URL           %s\n", printable(check.URL))
		}
		if check.Time != "" {
			fmt.Fprintf(p.stdout, "  time          %s\n", printable(check.Time))
		}
		fmt.Fprintf(p.stdout, "  fits          %s\n", yesNo(check.Fits))
	}
	if trace.Err == nil {
		fmt.Fprintln(p.stdout, "verified: yes")
		return nil
	}
	fmt.Fprintf(p.stdout, "verified: no, %v\n", trace.Err)
	for _, hint := range hints(trace) {
		fmt.Fprintf(p.stdout, "  perhaps %s\n", hint)
	}
	return trace.Err
}

// hints says what is likely wrong with a delivery that was refused.
func hints(trace verify.Trace) []string {
	var e *verify.Error
	if !errors.As(trace.Err, &e) {
		return nil
	}
	switch e.Kind {
	case verify.Missing, verify.Malformed:
		return []string{"the route names another provider than the one that sent this"}
	case verify.Stale:
		return []string{"the request was captured some time ago: say when with --at", "a clock is wrong"}
	case verify.Mismatch:
		hints := []string{"the secret is another endpoint's", "the body was changed on the way: parsed and written anew, or a newline added"}
		for _, check := range trace.Checks {
			if check.URL != "" {
				hints = append(hints, "public_url is not the URL that the provider was told")
			}
		}
		return hints
	}
	return nil
}

func (p *program) explainKey(route *config.Route, d *delivery.Delivery) error {
	if route.Rules == nil {
		fmt.Fprintln(p.stdout, "event key: this route reads none")
		return nil
	}
	doc := keyextract.Parse(d)
	for _, hs := range route.Handshakes {
		if holds, err := hs.When.Holds(doc); err == nil && holds {
			fmt.Fprintf(p.stdout, "handshake: %s; forwarded each time, never claimed\n", hs.Name)
			return nil
		}
	}
	values, err := route.Rules.Extract(doc)
	if err != nil {
		fmt.Fprintf(p.stdout, "event key: none, %v\n", err)
		return err
	}
	for _, key := range values.Keys {
		fmt.Fprintf(p.stdout, "event key: %s\n", key)
	}
	if values.Guard != "" {
		fmt.Fprintf(p.stdout, "guard: %s\n", values.Guard)
	}
	if len(values.Tags) > 0 {
		fmt.Fprintf(p.stdout, "tags: %s\n", printable(strings.Join(values.Tags, " ")))
	}
	return nil
}
