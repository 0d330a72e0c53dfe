package config

import (
	"fmt"
	"log/slog"
	"net/url"
)

// String says what the configuration is, in one line and without secrets.
func (c *Config) String() string {
	return fmt.Sprintf("listen %s, upstream %s, store %s, %d routes", c.Listen, c.Upstream, c.Store, len(c.Routes))
}

// Format prints String, whatever the verb.
func (c *Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue is what a log shows of a configuration.
func (c *Config) LogValue() slog.Value {
	routes := make([]string, len(c.Routes))
	for i, r := range c.Routes {
		routes[i] = r.String()
	}
	return slog.GroupValue(
		slog.String("listen", c.Listen), slog.String("health", c.Health), slog.String("admin", c.Admin),
		slog.String("state_dir", c.StateDir), slog.String("upstream", c.Upstream.String()),
		slog.String("store", c.Store.String()), slog.String("namespace", c.Namespace), slog.Any("routes", routes),
	)
}

// String says which route it is and what is done there.
func (r *Route) String() string { return fmt.Sprintf("%s %s %s", r.Name, r.Mode, r.Path) }

// LogValue is String.
func (r *Route) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String is the upstream's URL, as in a configuration.
func (up Upstream) String() string {
	s := up.Scheme + "://" + up.Address
	if up.Address != "" && up.Address[0] == '/' {
		s = map[string]string{"unix": "http+unix:", "fcgi": "fcgi+unix:"}[up.Scheme] + up.Address
	}
	if up.Root != "" {
		s += "?root=" + up.Root
	}
	return s
}

// String says where the store is: its kind, host and database, or its file.
// User, password and query are left out.
func (s Store) String() string {
	if s.Path != "" {
		return s.Kind + ":" + s.Path
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.Kind
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Format prints String, whatever the verb.
func (s Store) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue is String.
func (s Store) LogValue() slog.Value { return slog.StringValue(s.String()) }
