package main

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"oncegate/internal/admin"
	"oncegate/internal/config"
)

// describe says what a configuration does, in a few lines and without secrets:
// what serve prints at its start, and check at its end. The addresses are those
// that are listened on.
func describe(w io.Writer, c *config.Config, listen, health, operators string) error {
	upstream := c.Upstream.String()
	if c.Upstream.Scheme == "" {
		upstream = "the routes' own"
	}
	fmt.Fprintf(w, "listening on %s, in front of %s\n", listen, upstream)
	fmt.Fprintf(w, "health and metrics on %s\n", health)
	fmt.Fprintf(w, "operators on %s; their token is in %s\n", operators, filepath.Join(c.StateDir, admin.TokenFile))
	fmt.Fprintf(w, "state in %s, claims in %s, namespace %s\n", c.StateDir, c.Store, c.Namespace)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range c.Routes {
		by := r.Provider
		if by == "" {
			by = "said by hand"
		}
		fmt.Fprintf(table, "route %s\t%s\t%s\t%s\t%s\n", r.Name, r.Path, by, r.Mode, c.Store.Kind)
	}
	return table.Flush()
}
