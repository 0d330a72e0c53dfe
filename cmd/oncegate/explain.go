package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/capture"
	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/proxy"
	"oncegate/verify"
)

type explainFlags struct {
	configFlags
	route, at string
	entry     int
	fetch     bool
}

func (p *program) explainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Say what a route makes of a request in a file",
		Long: `explain reads a request from a file, or from - for standard input, and says what
a route makes of it: which bytes were signed, whether a signature fits, what is
likely wrong where none does, where the event key was found, and what the answer
would be. Nothing is sent, claimed or stored, and nobody is asked, unless --fetch
lets it get the provider's public keys.

The file holds a raw HTTP request, a curl command, or a HAR file or one of its
entries. The time of the signature is held against --at, or against now.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.explain(cmd.Context(), &flags, args[0])
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.route, "route", "", "the route's `name`; without it the one whose path it is")
	cmd.Flags().StringVar(&flags.at, "at", "", "when the request arrived, as in 2026-01-02T15:04:05Z")
	cmd.Flags().IntVar(&flags.entry, "entry", 0, "which entry of a HAR file, from 1 on; without it the one that is on the route")
	cmd.Flags().BoolVar(&flags.fetch, "fetch", false, "fetch the keys that the provider signs with, or ask the verifier that the route names")
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
	requests, err := p.readCapture(file)
	if err != nil {
		return err
	}
	request, err := choose(c, flags, requests)
	if err != nil {
		return err
	}
	request.Delivery.Arrived = arrived
	route, err := routeFor(c, flags.route, request.Delivery)
	if err != nil {
		return err
	}
	if !flags.fetch {
		if route, err = offline(route); err != nil {
			return err
		}
	}
	foreseen := proxy.Foresee(ctx, route, request.Delivery)
	e := &explainer{out: p.stdout, config: c, route: route, request: request, Foresight: foreseen}
	e.print(ctx)
	if foreseen.Err != nil {
		return fmt.Errorf("the route would not claim this delivery: %w", foreseen.Err)
	}
	return nil
}

// offline returns the route with a verifier that asks nobody.
func offline(r *config.Route) (*config.Route, error) {
	v, err := r.Verifier.Offline()
	if err != nil {
		return nil, err
	}
	same := *r
	same.Verifier = v
	return &same, nil
}

// maxRequestFile bounds a request that is explained.
const maxRequestFile = 64 << 20

func (p *program) readCapture(file string) ([]capture.Request, error) {
	text, err := p.readFile(file)
	if err != nil {
		return nil, err
	}
	folder := "."
	if file != "-" {
		folder = filepath.Dir(file)
	}
	requests, err := capture.Read(text, capture.Options{ReadFile: func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		return p.readFile(name)
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", printable(file), err)
	}
	return requests, nil
}

func (p *program) readFile(file string) ([]byte, error) {
	in := p.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRequestFile+1))
	if err == nil && len(text) > maxRequestFile {
		err = fmt.Errorf("%s is larger than %d bytes", printable(file), maxRequestFile)
	}
	return text, err
}

// choose takes the request that is asked about out of a HAR's many.
func choose(c *config.Config, flags *explainFlags, requests []capture.Request) (capture.Request, error) {
	if flags.entry != 0 {
		if flags.entry < 0 || flags.entry > len(requests) {
			return capture.Request{}, &usageError{fmt.Errorf("--entry must be between 1 and %d, which is how many requests there are", len(requests))}
		}
		return requests[flags.entry-1], nil
	}
	if len(requests) == 1 {
		return requests[0], nil
	}
	var fits []int
	for i, r := range requests {
		on := proxy.RouteOf(c, r.Delivery.Target)
		if on != nil && (flags.route == "" || on.Name == flags.route) && slices.Contains(on.Methods, r.Delivery.Method) {
			fits = append(fits, i)
		}
	}
	if len(fits) != 1 {
		return capture.Request{}, &usageError{fmt.Errorf("of %d requests %d are on a route; --entry says which one, from 1 on", len(requests), len(fits))}
	}
	return requests[fits[0]], nil
}

func routeFor(c *config.Config, name string, d *delivery.Delivery) (*config.Route, error) {
	if name == "" {
		if r := proxy.RouteOf(c, d.Target); r != nil {
			return r, nil
		}
		return nil, fmt.Errorf("route for the path %s: %w; --route says which of: %s", printable(d.RawPath()), errNotFound, routeNames(c))
	}
	for _, r := range c.Routes {
		if r.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("route %q: %w; there are: %s", name, errNotFound, routeNames(c))
}

// elsewhere names the routes whose signature check the delivery passes, other
// than this one.
func elsewhere(ctx context.Context, c *config.Config, this string, d *delivery.Delivery) (names []string) {
	for _, r := range c.Routes {
		var v *verify.Verifier
		if r.Name != this && r.Verifier != nil {
			v, _ = r.Verifier.Offline() // it was compiled before
		}
		if v != nil && v.Verify(ctx, d) == nil {
			names = append(names, r.Name)
		}
	}
	return names
}
