package witness

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"oncegate/keyextract"
)

// DefaultTimeout bounds one question where Options don't.
const DefaultTimeout = 2 * time.Second

// A Spec is one rule. It has one of SQL, HTTP and Otherwise.
type Spec struct {
	// When says for which deliveries the rule is. Without it: for all.
	When *keyextract.Condition `yaml:"when"`
	// With names the values of the delivery that the question needs. A name is
	// lower-case letters, digits and underscores, and begins with a letter. All
	// must be used, and must be there: without one of them it is not known.
	With map[string]keyextract.Part `yaml:"with"`
	// SQL is one SELECT statement, with :name for each value.
	SQL string `yaml:"sql"`
	// HTTP is the address to ask, with {name} for each value, in its path or
	// query.
	HTTP string `yaml:"http"`
	// Otherwise is what happens where nobody can be asked: retry or hold. It
	// stands alone, as the last rule.
	Otherwise string `yaml:"otherwise"`
}

// Options are what rules are compiled with.
type Options struct {
	// Database is where SQL is asked; nil where no rule has any. It stays the
	// caller's to close.
	Database *Database
	// Timeout bounds one question. Default DefaultTimeout.
	Timeout time.Duration
}

// Faults are all that is wrong with a list of rules, one a line.
type Faults []string

func (f Faults) Error() string { return strings.Join(f, "\n") }

// Rules are compiled rules. They don't change, and may be used concurrently.
type Rules struct {
	rules []rule
	web   *web
}

// A rule is one compiled Spec.
type rule struct {
	when  *keyextract.Match // nil: always
	with  *keyextract.Rules
	sql   *query
	http  *address
	other Answer
}

// Compile checks rules and makes them ready. It asks nobody. Its error is of
// type Faults.
func Compile(specs []Spec, o Options) (*Rules, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	c := &compiler{o: o}
	r := &Rules{web: newWeb(o.Timeout)}
	if len(specs) == 0 {
		c.fault("witness", "has no rules")
	}
	for i, s := range specs {
		r.rules = append(r.rules, c.rule(fmt.Sprintf("witness[%d]", i), s, i == len(specs)-1))
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return r, nil
}

// Close drops idle connections to those who were asked by HTTP.
func (r *Rules) Close() { r.web.client.CloseIdleConnections() }

type compiler struct {
	o      Options
	faults Faults
}

func (c *compiler) fault(field, format string, args ...any) {
	c.faults = append(c.faults, field+" "+fmt.Sprintf(format, args...))
}

func (c *compiler) rule(field string, s Spec, last bool) (r rule) {
	asked := 0
	for _, text := range []string{s.SQL, s.HTTP, s.Otherwise} {
		if text != "" {
			asked++
		}
	}
	if asked != 1 {
		c.fault(field, "needs one of sql, http and otherwise")
		return r
	}
	if s.Otherwise != "" {
		return c.otherwise(field, s, last)
	}
	if s.When == nil && !last {
		c.fault(field+".when", "is missing, so that later rules are never looked at")
	}
	if s.When != nil {
		m, err := keyextract.CompileCondition(*s.When)
		if err != nil {
			c.fault(field+".when", "%v", err)
		}
		r.when = m
	}
	if s.SQL != "" {
		r.sql = c.sql(field, s)
	} else {
		r.http = c.http(field, s)
	}
	if len(s.With) > 0 { // else the question has a fault
		r.with = c.with(field+".with", s.With)
	}
	return r
}

// with compiles where the question's values stand.
func (c *compiler) with(field string, parts map[string]keyextract.Part) *keyextract.Rules {
	for name := range parts {
		if !isName(name) {
			c.fault(field, "%q is no name: lower-case letters, digits and underscores, a letter first", name)
		}
	}
	with, err := keyextract.Compile(keyextract.Spec{Named: parts})
	if err != nil {
		c.fault(field, "%v", err)
	}
	return with
}

func (c *compiler) otherwise(field string, s Spec, last bool) (r rule) {
	if !last || s.When != nil || s.With != nil {
		c.fault(field+".otherwise", "stands alone, as the last rule")
	}
	switch s.Otherwise {
	case "retry":
		r.other = Retry
	case "hold":
		r.other = Hold
	default:
		c.fault(field+".otherwise", "must be retry or hold")
	}
	return r
}

func (c *compiler) sql(rule string, s Spec) *query {
	field := rule + ".sql"
	if c.o.Database == nil {
		c.fault(field, "needs a witness_db to ask")
		return nil
	}
	q, err := parseQuery(s.SQL, c.o.Database.kind)
	if err != nil {
		c.fault(field, "%v", err)
		return nil
	}
	q.db, q.timeout = c.o.Database, c.o.Timeout
	c.used(rule, "sql", s, q.names, ":%s")
	return q
}

func (c *compiler) http(rule string, s Spec) *address {
	field := rule + ".http"
	a, err := parseAddress(s.HTTP)
	if err != nil {
		c.fault(field, "%v", err)
		return nil
	}
	if u, err := url.Parse(s.HTTP); err == nil && u.User != nil {
		c.fault(field, "must not hold a password")
	}
	c.used(rule, "http", s, a.names, "{%s}")
	return a
}

// used faults names that are asked for and not given, or given and not asked
// for. A name stands in the question as place says.
func (c *compiler) used(rule, question string, s Spec, names []string, place string) {
	field := rule + "." + question
	asked, places := map[string]bool{}, make([]string, len(names))
	for i, n := range names {
		asked[n], places[i] = true, fmt.Sprintf(place, n)
	}
	switch {
	case len(s.With) == 0 && len(names) == 0:
		c.fault(field, "asks for no value of the delivery, so that all events would get one answer; write "+place+" where a value belongs, and say under with where it stands", "name")
		return
	case len(s.With) == 0:
		c.fault(rule+".with", "is missing: %s asks for %s; say where it stands in the delivery, as in with: {%s: {json: /data/object/id}}",
			question, strings.Join(places, ", "), names[0])
		return
	}
	for i, n := range names {
		if _, ok := s.With[n]; !ok {
			c.fault(field, "asks for %s, which with does not name", places[i])
		}
	}
	for n := range s.With {
		if !asked[n] {
			c.fault(field, "does not use %s", n)
		}
	}
}
