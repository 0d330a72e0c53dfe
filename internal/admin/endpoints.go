package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/operator"
	"oncegate/internal/strictyaml"
	"oncegate/lock"
)

// defaultLimit is how many claims a page has where nothing is said.
const defaultLimit = 50

// statusOf is the table from what went wrong to what is answered.
func statusOf(err error) (status int, code string) {
	switch {
	case errors.Is(err, operator.ErrQuery):
		return http.StatusBadRequest, "malformed"
	case errors.Is(err, operator.ErrNotFound):
		return http.StatusNotFound, "not_found"
	case errors.Is(err, operator.ErrNoForwarding):
		return http.StatusConflict, "no_forwarding"
	case errors.Is(err, lock.ErrUnfit):
		return http.StatusServiceUnavailable, "unfit"
	case errors.Is(err, lock.ErrUnavailable):
		return http.StatusServiceUnavailable, "unavailable"
	}
	return http.StatusInternalServerError, "failed"
}

// questions reads parameters, and refuses those that there are not.
type questions struct {
	values url.Values
	err    error
}

func ask(r *http.Request) *questions {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &questions{values: values}
	if err != nil {
		q.wrong("the query", "must be percent-encoded")
	}
	return q
}

// wrong notes the first thing that is wrong, and never says what was given.
func (q *questions) wrong(what, must string) {
	if q.err == nil {
		q.err = fmt.Errorf("%s is %w: it %s", what, operator.ErrQuery, must)
	}
}

func (q *questions) text(name string) string {
	values := q.values[name]
	delete(q.values, name)
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	}
	q.wrong(name, "must be given once")
	return ""
}

// filter is a text that selects claims: an empty one would select everything.
func (q *questions) filter(name string) string {
	given := len(q.values[name]) > 0
	text := q.text(name)
	if given && text == "" {
		q.wrong(name, "must not be empty; leave it out")
	}
	return text
}

func (q *questions) number(name string, otherwise int) int {
	text := q.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		q.wrong(name, "must be a whole number")
	}
	return n
}

func (q *questions) truth(name string) bool {
	switch q.text(name) {
	case "", "false":
		return false
	case "true":
		return true
	}
	q.wrong(name, "must be true or false")
	return false
}

func (q *questions) age(name string) time.Duration {
	text := q.text(name)
	if text == "" {
		return 0
	}
	d, err := strictyaml.ParseDuration(text)
	switch {
	case err != nil:
		q.wrong(name, err.Error())
	case d == 0:
		q.wrong(name, "must be longer than that; leave it out")
	}
	return d
}

// end returns what was wrong, with parameters that nobody asked for too.
func (q *questions) end() error {
	for range q.values {
		q.wrong("the query", "holds a parameter that is not known; /v1/openapi.json says which there are")
	}
	return q.err
}

func (s *Server) find(r *http.Request, _ Token) (any, error) {
	q := ask(r)
	query := operator.Query{
		Scope: q.filter("scope"), State: q.filter("state"), Key: q.filter("key"), Part: q.filter("part"), Tag: q.filter("tag"),
		Result: q.filter("result"), Unfinished: q.truth("unfinished"), SeenWithin: q.age("seen_within"), NotSeenFor: q.age("not_seen_for"),
		Limit: q.number("limit", defaultLimit), After: q.text("after"),
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	return s.o.Desk.Find(r.Context(), query)
}

func (s *Server) show(r *http.Request, _ Token) (any, error) {
	q := ask(r)
	body := q.truth("body")
	var digest lock.Digest
	if digest.UnmarshalText([]byte(r.PathValue("digest"))) != nil {
		q.wrong("the digest", "must be a claim's digest, as a listing shows it")
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	return s.o.Desk.Show(r.Context(), r.PathValue("scope"), digest, body)
}

// Events is what is known of the events that a key stands for.
type Events struct {
	Events []*operator.Life `json:"events"`
}

func (s *Server) events(r *http.Request, _ Token) (any, error) {
	q := ask(r)
	key, scope, body := q.text("key"), q.text("scope"), q.truth("body")
	if key == "" {
		q.wrong("key", "must be given: the event's key")
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	lives, err := s.o.Desk.ShowKey(r.Context(), scope, key, body)
	return Events{lives}, err
}

func (s *Server) stats(r *http.Request, _ Token) (any, error) {
	q := ask(r)
	within := q.age("within")
	if err := q.end(); err != nil {
		return nil, err
	}
	return s.o.Desk.Stats(r.Context(), within)
}

// Samples are deliveries that left no trace.
type Samples struct {
	Refused []evidence.Refused `json:"refused"`
}

func (s *Server) refused(r *http.Request, _ Token) (any, error) {
	if err := ask(r).end(); err != nil {
		return nil, err
	}
	return Samples{s.o.Refused()}, nil
}

// Outcomes are what came of a decision, for each claim.
type Outcomes struct {
	Outcomes []operator.Outcome `json:"outcomes"`
}

// decide writes a decision. Who decides is the token's holder; a name in the
// request is put beside it.
func (s *Server) decide(r *http.Request, who Token) (any, error) {
	var d operator.Decision
	decoder := json.NewDecoder(io.LimitReader(r.Body, mostBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil || decoder.More() {
		return nil, fmt.Errorf("the decision is %w: the body must be one JSON object as /v1/openapi.json has it, each claim with scope, digest and version as a listing shows them", operator.ErrQuery)
	}
	if err := ask(r).end(); err != nil {
		return nil, err
	}
	if d.Who == "" {
		d.Who = who.Name
	} else if d.Who != who.Name {
		d.Who = who.Name + " for " + d.Who
	}
	outcomes, err := s.o.Desk.Decide(r.Context(), d)
	return Outcomes{outcomes}, err
}
