package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An address is a URL with places for values: texts[0], names[0], texts[1], ...
type address struct {
	texts  []string
	places []string // the name at each place
	names  []string // each once
	query  int      // the first place that stands in the query
}

var (
	errAddress   = errors.New("must be an http or https address")
	errPlace     = errors.New("may have {name} in its path and query only, a name being lower-case letters, digits and underscores")
	errPathPlace = errors.New("must not have a fragment")
)

// parseAddress finds the places in an address.
func parseAddress(text string) (*address, error) {
	a := &address{query: -1}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return nil, errPlace
		}
		a.texts = append(a.texts, before)
		if strings.Contains(before, "?") && a.query < 0 {
			a.query = len(a.places)
		}
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}")
		if !found || !isName(name) {
			return nil, errPlace
		}
		a.places = append(a.places, name)
		if !slices.Contains(a.names, name) {
			a.names = append(a.names, name)
		}
		rest = after
	}
	if a.query < 0 {
		a.query = len(a.places)
	}
	u, err := url.Parse(strings.Join(a.texts, "x"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errAddress
	}
	if u.Fragment != "" {
		return nil, errPathPlace
	}
	head := u.Scheme + "://" + u.Host
	if u.User != nil {
		head = u.Scheme + "://" + u.User.String() + "@" + u.Host
	}
	if len(a.places) > 0 && !strings.HasPrefix(a.texts[0], head+"/") && !strings.HasPrefix(a.texts[0], head+"?") {
		return nil, errPlace
	}
	return a, nil
}

// with returns the address with values in their places.
func (a *address) with(values map[string]any) (string, error) {
	var b strings.Builder
	for i, text := range a.texts {
		b.WriteString(text)
		if i == len(a.places) {
			break
		}
		v := fmt.Sprint(values[a.places[i]])
		if i >= a.query {
			b.WriteString(url.QueryEscape(v))
			continue
		}
		if v == "." || v == ".." {
			return "", fmt.Errorf("%w: %s would be a dot segment", ErrValue, a.places[i])
		}
		b.WriteString(url.PathEscape(v))
	}
	return b.String(), nil
}

// web asks by HTTP.
type web struct {
	client  *http.Client
	timeout time.Duration
}

func newWeb(timeout time.Duration) *web {
	return &web{timeout: timeout, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask asks at an address.
func (w *web) ask(ctx context.Context, a *address, values map[string]any) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	at, err := a.with(values)
	if err != nil {
		return Unknown, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return Unknown, fmt.Errorf("%w: the address", ErrValue) // the cause quotes it
	}
	r.Header.Set("User-Agent", "oncegate")
	resp, err := w.client.Do(r)
	if err != nil {
		return Unknown, unreached(err)
	}
	defer resp.Body.Close()
	// What it says beside its status is of no interest, but for the connection.
	_, _ = io.CopyN(io.Discard, resp.Body, 16<<10)
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return Yes, nil
	case resp.StatusCode == http.StatusNotFound:
		return No, nil
	}
	return Unknown, fmt.Errorf("status %d: %w", resp.StatusCode, ErrStatus)
}

// unreached drops the address from an error of the client's, for it holds the
// delivery's values.
func unreached(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrTimeout
	}
	return fmt.Errorf("get: %w", err)
}
