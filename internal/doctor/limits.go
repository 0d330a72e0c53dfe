package doctor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"oncegate/internal/config"
)

// maxSettings bounds a file of settings that is read, and maxFiles their number.
const (
	maxSettings = 1 << 20
	maxFiles    = 200
)

// A pool is what is read of one of PHP-FPM's pools.
type pool struct {
	name, listen string
	limit        time.Duration // request_terminate_timeout; 0: none
}

// limits holds app_limit against what PHP-FPM and nginx say.
func (r *Report) limits(o Options) {
	var pools []pool
	for _, name := range bounded(o.FPM) {
		data, err := readSettings(name)
		if err != nil {
			r.add("app_limit", name, Skipped, "can't be read: "+reason(err), "")
			continue
		}
		pools = append(pools, poolsOf(data)...)
	}
	for _, up := range limited(o.Config) {
		r.poolLimits(up, pools)
	}
	for _, name := range bounded(o.Nginx) {
		r.nginxLimits(name, o.Config)
	}
}

func bounded(names []string) []string { return names[:min(len(names), maxFiles)] }

// An app is one upstream with the limits that hold for it.
type app struct {
	where    string
	upstream config.Upstream
	limit    time.Duration // the shortest app_limit of its routes
}

// limited lists the apps of routes that claim.
func limited(c *config.Config) (apps []app) {
next:
	for _, route := range c.Routes {
		if route.Mode == config.ModeOff {
			continue
		}
		for i := range apps {
			if apps[i].upstream == route.Upstream {
				apps[i].limit = min(apps[i].limit, route.AppLimit)
				continue next
			}
		}
		apps = append(apps, app{route.Upstream.String(), route.Upstream, route.AppLimit})
	}
	return apps
}

// poolLimits judges the pools that may serve an app: the one at its socket, or
// all, where a web server stands between.
func (r *Report) poolLimits(a app, pools []pool) {
	var serving []pool
	for _, p := range pools {
		if a.upstream.Scheme != "fcgi" || p.listen == a.upstream.Address || "127.0.0.1:"+p.listen == a.upstream.Address {
			serving = append(serving, p)
		}
	}
	if len(serving) == 0 {
		r.add("app_limit", a.where, Skipped, fmt.Sprintf("app_limit is %s; no PHP-FPM pool was found to hold it against", text(a.limit)),
			"name its file: --php-fpm FILE")
		return
	}
	for _, p := range serving {
		where := "pool " + p.name
		grave := Fault
		if len(serving) > 1 {
			grave = Warning // it may be another app's
		}
		switch {
		case a.limit == 0:
			r.add("app_limit", where, grave, "app_limit is 0, but PHP-FPM goes on when the connection is gone", "set app_limit to the pool's request_terminate_timeout")
		case p.limit == 0:
			r.add("app_limit", where, Warning, fmt.Sprintf("the pool has no request_terminate_timeout: a request may work for longer than app_limit (%s), and be run again beside itself", text(a.limit)),
				fmt.Sprintf("set request_terminate_timeout = %d in the pool", int(a.limit.Seconds())))
		case p.limit > a.limit:
			r.add("app_limit", where, grave, fmt.Sprintf("request_terminate_timeout is %s, longer than app_limit (%s): an event could be run again while it runs", text(p.limit), text(a.limit)),
				"set app_limit: "+text(p.limit))
		default:
			r.add("app_limit", where, OK, fmt.Sprintf("%s; the pool ends a request after %s", text(a.limit), text(p.limit)), "")
		}
	}
}

// poolsOf reads a file of PHP-FPM's: sections, and name = value.
func poolsOf(data []byte) (pools []pool) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			if name != "global" {
				pools = append(pools, pool{name: name})
			}
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || len(pools) == 0 || strings.HasPrefix(line, ";") {
			continue
		}
		value, _, _ = strings.Cut(value, ";")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		p := &pools[len(pools)-1]
		switch strings.TrimSpace(name) {
		case "listen":
			p.listen = strings.ReplaceAll(value, "$pool", p.name)
		case "request_terminate_timeout":
			p.limit, _ = fpmTime(value) // what PHP-FPM can't read, it does not start with
		}
	}
	return pools
}

// fpmTime reads a time as PHP-FPM does: a number with s, m, h or d, seconds
// without.
func fpmTime(s string) (time.Duration, bool) {
	unit := time.Second
	if n := len(s); n > 0 {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[n-1]]; ok {
			s, unit = s[:n-1], u
		}
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return time.Duration(n) * unit, err == nil
}

// nginxTime is a directive of nginx's with a time that matters here.
var nginxTime = regexp.MustCompile(`(?m)^[^#\n]*?\b((?:fastcgi|proxy)_read_timeout)\s+([0-9]+)(ms|s|m|h|d)?\s*;`)

// nginxLimits judges how long nginx waits for an answer, on either side of
// oncegate.
func (r *Report) nginxLimits(name string, c *config.Config) {
	data, err := readSettings(name)
	if err != nil {
		r.add("app_limit", name, Skipped, "can't be read: "+reason(err), "")
		return
	}
	longest := time.Duration(0)
	for _, a := range limited(c) {
		longest = max(longest, a.limit)
	}
	found := nginxTime.FindAllSubmatch(data, maxFiles)
	if len(found) == 0 {
		r.add("app_limit", name, Skipped, "says neither fastcgi_read_timeout nor proxy_read_timeout; nginx's own value is 60s", "")
	}
	for _, m := range found {
		limit := timeOf(string(m[2]), string(m[3]))
		directive := string(m[1])
		if limit < longest {
			r.add("app_limit", name, Warning, fmt.Sprintf("%s is %s, shorter than app_limit (%s): an answer that takes longer is lost, and the event counts as unknown", directive, text(limit), text(longest)),
				fmt.Sprintf("set %s to %ds", directive, int(longest.Seconds())))
			continue
		}
		r.add("app_limit", name, OK, fmt.Sprintf("%s is %s", directive, text(limit)), "")
	}
}

func timeOf(number, unit string) time.Duration {
	n, err := strconv.ParseInt(number, 10, 31)
	if err != nil {
		n = 1<<31 - 1
	}
	return time.Duration(n) * map[string]time.Duration{
		"ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
	}[unit]
}

var errTooLong = errors.New("is too large to be a file of settings")

func readSettings(name string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("is no regular file"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(data) > maxSettings {
		err = errTooLong
	}
	return data, err
}
