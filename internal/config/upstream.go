package config

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

const upstreamForms = "must be http://host:port, https://host:port, http+unix:/path/to.sock, fcgi://host:port?root=/app/public or fcgi+unix:/path/to.sock?root=/app/public, with no path, user or query beside"

// upstream reads an upstream's URL.
func (l *loader) upstream(field, text string) Upstream {
	up := Upstream{IdleTimeout: value(l.top.UpstreamIdleTimeout)}
	scheme, rest, _ := strings.Cut(text, ":")
	ok := false
	switch scheme {
	case "http", "https":
		ok = up.overTCP(text, "")
	case "http+unix":
		ok = up.overSocket("unix", rest)
	case "fcgi":
		ok = up.overTCP(text, "9000") && up.Root != ""
	case "fcgi+unix":
		ok = up.overSocket("fcgi", rest) && up.Root != ""
	}
	if !ok {
		l.fault(field, upstreamForms)
	}
	if own := l.ownListener(&up); own != "" {
		l.fault(field, "is oncegate's own %s: every request would come back to it; say where the app listens", own)
	}
	return up
}

// ownListener returns the field of the listener of this process that the upstream
// leads to; empty where it is none, as far as names tell.
func (l *loader) ownListener(up *Upstream) string {
	own := []struct{ field, address string }{
		{"listen", value(l.top.Listen)}, {"health", value(l.top.Health)}, {"admin", value(l.top.Admin)},
	}
	for _, at := range own {
		host, port, err := net.SplitHostPort(at.address)
		if err != nil || up.Host == "" || net.JoinHostPort(up.Host, port) != up.Address {
			continue
		}
		if host == up.Host || loopback(up.Host) && (wildcard(host) || host == "localhost") || up.Host == "localhost" && loopback(host) {
			return at.field
		}
	}
	return ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (up *Upstream) overTCP(text, port string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || (u.Path != "" && u.Path != "/") {
		return false
	}
	switch {
	case u.Port() != "":
		port = u.Port()
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	if !validPort(port) || port == "0" {
		return false
	}
	up.Scheme, up.Host, up.Address = u.Scheme, u.Hostname(), net.JoinHostPort(u.Hostname(), port)
	return up.query(u.RawQuery)
}

func (up *Upstream) overSocket(scheme, rest string) bool {
	raw, query, _ := strings.Cut(rest, "?")
	socket, err := url.PathUnescape(strings.TrimPrefix(raw, "//"))
	if err != nil || !absolute(socket) {
		return false
	}
	up.Scheme, up.Address = scheme, socket
	return up.query(query)
}

// query takes root, which only fcgi has, and nothing else.
func (up *Upstream) query(raw string) bool {
	if raw == "" {
		return true
	}
	values, err := url.ParseQuery(raw)
	root := values["root"]
	if err != nil || up.Scheme != "fcgi" || len(values) != 1 || len(root) != 1 || !absolute(root[0]) {
		return false
	}
	up.Root = path.Clean(root[0])
	return true
}

// absolute reports whether p is a path from the root on that a system call can
// take.
func absolute(p string) bool { return len(p) > 1 && p[0] == '/' && !strings.ContainsRune(p, 0) }

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// checkListeners sees that the listeners' addresses are addresses, and that no
// two of them are one.
func (l *loader) checkListeners(c *Config) {
	seen := map[string]string{} // port → field
	hosts := map[string]string{}
	for _, at := range []struct{ field, address string }{{"listen", c.Listen}, {"health", c.Health}, {"admin", c.Admin}} {
		host, port, err := net.SplitHostPort(at.address)
		if err != nil || !validPort(port) {
			l.fault(at.field, "must be an address to listen on, as in 127.0.0.1:8080 or :8080")
			continue
		}
		other, taken := seen[port]
		if taken && port != "0" && (host == hosts[other] || wildcard(host) || wildcard(hosts[other])) {
			l.fault(at.field, "is the same address as %s; each needs its own", other)
			continue
		}
		seen[port], hosts[at.field] = at.field, host
	}
}

func wildcard(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
