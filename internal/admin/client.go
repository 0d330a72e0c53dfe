package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oncegate/internal/operator"
	"oncegate/lock"
)

// A Client asks a running oncegate what a Desk is asked. Its methods may be
// called concurrently.
type Client struct {
	// URL is the listener's, such as http://127.0.0.1:9181.
	URL   *url.URL
	Token string
	HTTP  *http.Client
}

// An APIError is a refusal by the API.
type APIError struct {
	Status       int
	Code, Detail string
}

func (e *APIError) Error() string { return fmt.Sprintf("the API answered %d: %s", e.Status, e.Detail) }

// Is lets callers ask what they would ask of a Desk's error.
func (e *APIError) Is(target error) bool {
	return e.Code == "not_found" && target == operator.ErrNotFound ||
		e.Code == "malformed" && target == operator.ErrQuery ||
		e.Code == "no_forwarding" && target == operator.ErrNoForwarding ||
		e.Code == "unfit" && target == lock.ErrUnfit ||
		e.Code == "unavailable" && target == lock.ErrUnavailable
}

// ErrAPI says that there is no API at the URL, or that it is out of reach.
var ErrAPI = errors.New("the API is out of reach")

// mostAnswer bounds what is read of an answer.
const mostAnswer = 256 << 20

// call asks once, and reads the answer into result.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	at := c.URL.JoinPath(path)
	at.RawQuery = query.Encode()
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), sent)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w; does oncegate run, and is this its admin address?", ErrAPI, err)
	}
	defer resp.Body.Close()
	if resp.Header.Get(apiHeader) == "" {
		return fmt.Errorf("%w: something else answered, with status %d, or an oncegate older than this command; is this the admin address?", ErrAPI, resp.StatusCode)
	}
	decoder := json.NewDecoder(io.LimitReader(resp.Body, mostAnswer))
	if resp.StatusCode != http.StatusOK {
		var p problemDocument
		if decoder.Decode(&p) != nil || p.Code == "" {
			return fmt.Errorf("%w: status %d and no problem document", ErrAPI, resp.StatusCode)
		}
		return &APIError{resp.StatusCode, p.Code, p.Detail}
	}
	if err := decoder.Decode(result); err != nil {
		return fmt.Errorf("%w: the answer can't be read: %w", ErrAPI, err)
	}
	return nil
}

// Find is Desk.Find.
func (c *Client) Find(ctx context.Context, q operator.Query) (page operator.Page, err error) {
	values := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("scope", q.Scope)
	set("state", q.State)
	set("key", q.Key)
	set("part", q.Part)
	set("tag", q.Tag)
	set("result", q.Result)
	set("after", q.After)
	if q.Unfinished {
		set("unfinished", "true")
	}
	set("seen_within", age(q.SeenWithin))
	set("not_seen_for", age(q.NotSeenFor))
	err = c.call(ctx, http.MethodGet, "/v1/claims", values, nil, &page)
	return page, err
}

func age(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// Show is Desk.Show.
func (c *Client) Show(ctx context.Context, scope string, digest lock.Digest, body bool) (*operator.Life, error) {
	var life operator.Life
	path := "/v1/claims/" + url.PathEscape(scope) + "/" + digest.String()
	if err := c.call(ctx, http.MethodGet, path, withBody(body), nil, &life); err != nil {
		return nil, err
	}
	return &life, nil
}

// ShowKey is Desk.ShowKey.
func (c *Client) ShowKey(ctx context.Context, scope, key string, body bool) ([]*operator.Life, error) {
	values := withBody(body)
	values.Set("key", key)
	if scope != "" {
		values.Set("scope", scope)
	}
	var events Events
	err := c.call(ctx, http.MethodGet, "/v1/events", values, nil, &events)
	return events.Events, err
}

func withBody(body bool) url.Values {
	if !body {
		return url.Values{}
	}
	return url.Values{"body": {"true"}}
}

// Decide is Desk.Decide.
func (c *Client) Decide(ctx context.Context, d operator.Decision) ([]operator.Outcome, error) {
	var outcomes Outcomes
	err := c.call(ctx, http.MethodPost, "/v1/decisions", nil, d, &outcomes)
	return outcomes.Outcomes, err
}

// Stats is Desk.Stats.
func (c *Client) Stats(ctx context.Context, within time.Duration) (*operator.Stats, error) {
	values := url.Values{}
	if within > 0 {
		values.Set("within", within.String())
	}
	var s operator.Stats
	if err := c.call(ctx, http.MethodGet, "/v1/stats", values, nil, &s); err != nil {
		return nil, err
	}
	return &s, nil
}
