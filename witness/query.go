package witness

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A kind of database, as far as its SQL differs.
type kind uint8

const (
	postgres kind = iota + 1
	mysql
	sqlite
)

// A query is a statement with its values' places marked as the driver wants them.
type query struct {
	db      *Database
	timeout time.Duration
	text    string
	args    []string // the value's name at each place
	names   []string // each name once
}

var (
	errNotOneSelect = errors.New("must be one SELECT statement")
	errOwnPlace     = errors.New("must name its values as :name; ? and $1 are for the driver")
	errUnended      = errors.New("has a quotation or comment that does not end")
)

// parseQuery marks the values' places in a statement. It looks at no more of the
// language than quotations, comments and casts, so as to know what is a place.
func parseQuery(text string, k kind) (*query, error) {
	p := &parser{text: strings.TrimSpace(text), kind: k, query: &query{}}
	p.text = strings.TrimSpace(strings.TrimSuffix(p.text, ";"))
	first := strings.ToUpper(strings.TrimLeft(p.text, "( \t\r\n"))
	if !strings.HasPrefix(first, "SELECT") && !strings.HasPrefix(first, "WITH") {
		return nil, errNotOneSelect
	}
	for p.at < len(p.text) {
		if err := p.step(); err != nil {
			return nil, err
		}
	}
	p.query.text = p.out.String()
	return p.query, nil
}

type parser struct {
	text  string
	at    int
	kind  kind
	out   strings.Builder
	query *query
}

// step copies one token, or replaces it.
func (p *parser) step() error {
	rest := p.text[p.at:]
	switch c := rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		return p.quoted(c)
	case strings.HasPrefix(rest, "--"), c == '#' && p.kind == mysql:
		return p.upTo("\n", true)
	case strings.HasPrefix(rest, "/*"):
		return p.upTo("*/", false)
	case c == '$' && p.kind == postgres:
		return p.dollar(rest)
	case strings.HasPrefix(rest, "::"):
		return p.copy(2)
	case c == ':':
		return p.place(rest)
	case c == '?' && p.kind != postgres:
		return errOwnPlace
	case c == ';':
		return errNotOneSelect
	}
	return p.copy(1)
}

func (p *parser) copy(n int) error {
	p.out.WriteString(p.text[p.at : p.at+n])
	p.at += n
	return nil
}

// quoted copies a quotation. A quote doubled in it makes two of it, which is as
// well.
func (p *parser) quoted(quote byte) error {
	for i := p.at + 1; i < len(p.text); i++ {
		switch {
		case p.text[i] == '\\' && p.kind == mysql && quote != '`':
			i++
		case p.text[i] == '\\' && p.kind == postgres && quote == '\'' && p.escapes():
			i++
		case p.text[i] == quote:
			return p.copy(i + 1 - p.at)
		}
	}
	return errUnended
}

// escapes reports whether the quotation at hand is one of PostgreSQL's E'...'.
func (p *parser) escapes() bool {
	if p.at == 0 || p.text[p.at-1]|0x20 != 'e' {
		return false
	}
	return p.at == 1 || !isNameByte(p.text[p.at-2]|0x20)
}

// upTo copies up to a mark; the end of the text will do where it may.
func (p *parser) upTo(mark string, orEnd bool) error {
	n := strings.Index(p.text[p.at:], mark)
	switch {
	case n >= 0:
		return p.copy(n + len(mark))
	case orEnd:
		return p.copy(len(p.text) - p.at)
	}
	return errUnended
}

// dollar copies a dollar quotation of PostgreSQL's.
func (p *parser) dollar(rest string) error {
	n := 1
	for n < len(rest) && isNameByte(rest[n]|0x20) {
		n++
	}
	if n == len(rest) || rest[n] != '$' {
		return errOwnPlace
	}
	tag := rest[:n+1]
	end := strings.Index(rest[n+1:], tag)
	if end < 0 {
		return errUnended
	}
	return p.copy(len(tag) + end + len(tag))
}

// place replaces :name by the driver's mark.
func (p *parser) place(rest string) error {
	n := 1
	for n < len(rest) && isNameByte(rest[n]) {
		n++
	}
	name := rest[1:n]
	if !isName(name) {
		return p.copy(1) // such as a slice of an array, a[1:2]
	}
	p.at += n
	q := p.query
	known := 0
	for i, other := range q.names {
		if other == name {
			known = i + 1
		}
	}
	if known == 0 {
		q.names = append(q.names, name)
		known = len(q.names)
	}
	if p.kind == postgres {
		q.args = q.names
		fmt.Fprintf(&p.out, "$%d", known)
		return nil
	}
	q.args = append(q.args, name)
	p.out.WriteByte('?')
	return nil
}

// isName reports whether s is lower-case letters, digits and underscores, a
// letter first.
func isName(s string) bool {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_'
}
