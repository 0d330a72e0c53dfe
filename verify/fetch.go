package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"
)

// Bounds on fetched keys.
const (
	maxKeyBytes    = 256 << 10
	maxCached      = 64
	freshFor       = 6 * time.Hour    // a key that was fetched is used so long
	staleFor       = 24 * time.Hour   // or so long, while it can't be fetched anew
	failedFor      = 10 * time.Second // a fetch that failed isn't tried again so soon
	refreshAtLeast = time.Minute      // a key set isn't fetched anew more often
	fetchBurst     = 20               // so many fetches at once, and then
	fetchEvery     = time.Second      // one in this time: what strangers make up leads to no more
)

// A fetcher gets keys over HTTPS from pinned hosts. It follows no redirect,
// connects to no address that isn't public, and keeps what it got; what many
// deliveries ask for at once is fetched once.
type fetcher struct {
	client *http.Client
	flight singleflight.Group
	now    func() time.Time

	mu    sync.Mutex // guards what follows
	cache map[question]fetched
	spent time.Time // fetches are spent up to this moment; it runs ahead by at most fetchBurst
}

type fetched struct {
	body  []byte
	err   error
	at    time.Time // when it was got
	tried time.Time // when it was last asked for
}

func newFetcher(t http.RoundTripper) *fetcher {
	if t == nil {
		dialer := &net.Dialer{Timeout: askTimeout, Control: publicOnly}
		t = &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: askTimeout, IdleConnTimeout: time.Minute, MaxIdleConns: 8,
		}
	}
	return &fetcher{client: noRedirects(t), now: time.Now, cache: map[question]fetched{}}
}

// errPrivate says that a pinned host resolved to an address that is not public.
var errPrivate = errors.New("the host's address is not a public one")

// publicOnly is asked with the address that is about to be connected to, after
// names were resolved, so no answer of a name server gets round it.
func publicOnly(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := ap.Addr().Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || sharedSpace.Contains(a) {
		return errPrivate
	}
	return nil
}

// sharedSpace is carriers' (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// pins says which URLs may be fetched.
type pins struct {
	hosts          []*regexp.Regexp
	prefix, suffix string // of the path
}

func compilePins(k *Keys) (*pins, error) {
	p := &pins{prefix: k.Prefix, suffix: k.Suffix}
	if len(k.Hosts) == 0 {
		return nil, errors.New("keys.hosts: name the hosts that keys may come from")
	}
	for _, host := range k.Hosts {
		if strings.HasPrefix(host, "*") || strings.ContainsAny(host, "/:@") || strings.Count(host, ".") < 1 {
			return nil, fmt.Errorf("keys.hosts: %q is no host name with a fixed beginning", host)
		}
		expr := strings.ReplaceAll(regexp.QuoteMeta(strings.ToLower(host)), `\*`, `[a-z0-9-]+`)
		p.hosts = append(p.hosts, regexp.MustCompile("^"+expr+"$"))
	}
	return p, nil
}

// allow returns the URL in one certain spelling, or why it may not be fetched.
func (p *pins) allow(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2048 {
		return "", errors.New("is no URL")
	}
	switch {
	case u.Scheme != "https", u.User != nil, u.Fragment != "", u.Opaque != "", u.RawQuery != "", u.Port() != "" && u.Port() != "443":
		return "", errors.New("is no plain https URL")
	case strings.Contains(u.Path, "..") || strings.Contains(u.Path, "\\"):
		return "", errors.New("has an odd path")
	case !strings.HasPrefix(u.Path, p.prefix) || !strings.HasSuffix(u.Path, p.suffix):
		return "", errors.New("has a path that keys may not come from")
	}
	for _, host := range p.hosts {
		if host.MatchString(strings.ToLower(u.Hostname())) {
			return "https://" + strings.ToLower(u.Hostname()) + u.EscapedPath(), nil
		}
	}
	return "", errors.New("is on a host that keys may not come from")
}

// A question is a GET of a URL that pins allowed, or a POST of JSON to it.
type question struct{ url, post string }

// get returns the answer to a question. newer asks for it
// anew, but not more often than once a minute. It waits no longer than
// askTimeout: the fetch belongs to all who wait for it, so that the end of one
// delivery's context doesn't end it.
func (f *fetcher) get(ctx context.Context, q question, newer bool) ([]byte, error) {
	if got, ok := f.cached(q, newer); ok {
		return got.body, got.err
	}
	body, err, _ := f.flight.Do(q.url+" "+q.post, func() (any, error) {
		if got, ok := f.cached(q, newer); ok {
			return got.body, got.err
		}
		if !f.spend() {
			return nil, errTooOften
		}
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		body, err := f.fetch(own, q)
		return f.keep(q, body, err)
	})
	if err != nil {
		return nil, err
	}
	return body.([]byte), nil
}

// errTooOften says that more keys are asked for than any provider has.
var errTooOften = errors.New("too many keys are being asked for")

// spend takes one fetch of those that there are.
func (f *fetcher) spend() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if f.spent.Before(now) {
		f.spent = now
	}
	if f.spent.Sub(now) >= fetchBurst*fetchEvery {
		return false
	}
	f.spent = f.spent.Add(fetchEvery)
	return true
}

// cached returns what is known and still good enough.
func (f *fetcher) cached(q question, newer bool) (fetched, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got, ok := f.cache[q]
	now := f.now()
	tried := now.Sub(got.tried)
	switch {
	case !ok:
		return got, false
	case got.err != nil:
		return got, tried < failedFor
	case now.Sub(got.at) >= freshFor:
		return got, tried < failedFor
	}
	return got, !newer || tried < refreshAtLeast
}

// keep remembers a result. Where a fetch fails, a key that was good is used for
// another while, and the next try put off.
func (f *fetcher) keep(q question, body []byte, err error) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if old, ok := f.cache[q]; ok && err != nil && old.err == nil && now.Sub(old.at) < staleFor {
		old.tried = now
		f.cache[q] = old
		return old.body, nil
	}
	if len(f.cache) >= maxCached {
		// A provider has a handful of keys; what fills the cache is what strangers
		// made up, and that was not found.
		maps.DeleteFunc(f.cache, func(_ question, got fetched) bool { return got.err != nil })
	}
	if len(f.cache) >= maxCached {
		clear(f.cache)
	}
	f.cache[q] = fetched{body: body, err: err, at: now, tried: now}
	return body, err
}

func (f *fetcher) fetch(ctx context.Context, q question) ([]byte, error) {
	method := http.MethodGet
	if q.post != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, q.url, strings.NewReader(q.post))
	if err != nil {
		return nil, err
	}
	if q.post != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", req.URL.Host, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeyBytes+1))
	if err == nil && len(body) > maxKeyBytes {
		err = fmt.Errorf("%s answered more than 256 KiB", req.URL.Host)
	}
	return body, err
}
