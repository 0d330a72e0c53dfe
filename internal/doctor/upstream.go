package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"oncegate/internal/config"
)

// upstreams sees whether the apps can be reached, and don't lead back here.
func (r *Report) upstreams(ctx context.Context, o Options) {
	seen := map[config.Upstream]bool{{}: true} // none at the top level
	for _, up := range append([]config.Upstream{o.Config.Upstream}, upstreamsOf(o.Config)...) {
		if !seen[up] {
			seen[up] = true
			r.upstream(ctx, o, up)
		}
	}
}

func upstreamsOf(c *config.Config) (ups []config.Upstream) {
	for _, route := range c.Routes {
		ups = append(ups, route.Upstream)
	}
	return ups
}

func (r *Report) upstream(ctx context.Context, o Options, up config.Upstream) {
	where := up.String()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	conn, err := dialUpstream(ctx, up)
	if err != nil {
		r.add("upstream", where, Fault, "can't be reached: "+dialReason(err), "start the app, or put upstream right")
		return
	}
	conn.Close()
	if up.Scheme == "fcgi" {
		script := filepath.Join(up.Root, "index.php")
		if _, err := os.Stat(script); err != nil {
			r.add("upstream", where, Warning, "accepts connections, but "+script+" can't be looked at: "+reason(err),
				"PHP-FPM must find it there; see whether root is the folder that holds index.php")
			return
		}
		r.add("upstream", where, OK, "accepts connections, and index.php is there", "")
		return
	}
	if leadsBack(ctx, o, up) {
		r.add("upstream", where, Fault, "leads back to oncegate: each delivery would go round for ever", "name the address at which the app alone answers")
		return
	}
	r.add("upstream", where, OK, "accepts connections", "")
}

func dialUpstream(ctx context.Context, up config.Upstream) (net.Conn, error) {
	network := "tcp"
	if filepath.IsAbs(up.Address) {
		network = "unix"
	}
	if up.Scheme == "https" {
		d := tls.Dialer{Config: &tls.Config{ServerName: up.Host}}
		return d.DialContext(ctx, network, up.Address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, up.Address)
}

// leadsBack asks the upstream for a route with a method that oncegate refuses
// there without passing it on, and that no webhook's handler has.
func leadsBack(ctx context.Context, o Options, up config.Upstream) bool {
	for _, route := range o.Config.Routes {
		if route.Mode == config.ModeOff || route.Upstream != up {
			continue
		}
		target := &url.URL{Scheme: "http", Host: "localhost", Path: route.Path}
		if up.Scheme == "https" {
			target.Scheme = "https"
		}
		if up.Host != "" {
			target.Host = up.Host
		}
		client := newClient(o.Timeout)
		client.Transport = &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dialPlain(ctx, up) },
			TLSClientConfig:   &tls.Config{ServerName: up.Host},
		}
		request, err := http.NewRequestWithContext(ctx, unusualMethod, target.String(), nil)
		if err != nil {
			return false
		}
		if host := publicHost(o); host != "" {
			request.Host = host
		}
		answer, err := client.Do(request)
		if err != nil {
			return false // that it can be reached is known; what it says is its own affair
		}
		answer.Body.Close()
		return answer.Header.Get(resultHeader) != ""
	}
	return false
}

const (
	resultHeader  = "Oncegate-Result"
	unusualMethod = "REPORT"
)

func dialPlain(ctx context.Context, up config.Upstream) (net.Conn, error) {
	up.Scheme = "http" // the transport sees to TLS
	return dialUpstream(ctx, up)
}

// publicHost is the host that the sender was told, if that is known.
func publicHost(o Options) string {
	if u, err := url.Parse(o.Public); err == nil && u.Host != "" {
		return u.Host
	}
	if o.Config.PublicURL != nil {
		return o.Config.PublicURL.Host
	}
	return ""
}

// dialReason says why there was no connection, without the addresses.
func dialReason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "no answer in time"
	case errors.Is(err, io.EOF):
		return "the connection was closed"
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
