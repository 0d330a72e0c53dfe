package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
)

func (p *program) healthcheckCommand() *cobra.Command {
	var flags configFlags
	var address string
	var live bool
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a running oncegate whether it is ready",
		Long: `healthcheck asks the health listener for /readyz, or with --live for /livez, and
ends with 0 where the answer is 200. It is meant for a container's own check.

The address comes from --health, else from ONCEGATE_HEALTH, else from the
configuration. A configuration that was broken while oncegate runs does not make
it unhealthy: then the default address is asked.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/readyz"
			if live {
				path = "/livez"
			}
			if address == "" {
				address = p.healthAddress(&flags)
			}
			return p.probe(cmd.Context(), "http://"+reachable(address)+path)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&address, "health", "", "the `address` of the health listener")
	cmd.Flags().BoolVar(&live, "live", false, "ask whether it lives, not whether it is ready")
	return cmd
}

const defaultHealth = "127.0.0.1:9180"

func (p *program) healthAddress(flags *configFlags) string {
	for _, line := range p.env {
		if value, ok := strings.CutPrefix(line, "ONCEGATE_HEALTH="); ok && value != "" {
			return value
		}
	}
	if c, err := config.Load(flags.options(p.env)); err == nil {
		return c.Health
	}
	return defaultHealth
}

// reachable is an address at which one reaches what listens on the given one.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func (p *program) probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return &usageError{err}
	}
	// A proxy from the environment has no part in this.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no answer from the health listener: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("the health listener's answer broke off: %w", err)
	}
	text := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not healthy: %s answered %s %s", url, response.Status, text)
	}
	_, err = fmt.Fprintln(p.stdout, text)
	return err
}
