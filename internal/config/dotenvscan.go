package config

import (
	"errors"
	"regexp"
	"strings"
)

// dotenvText is a value whose ${NAME} are not yet replaced.
type dotenvText struct {
	chars string
	vars  []int // where a $ stands that may begin a ${NAME}, ascending
}

var dotenvVariable = regexp.MustCompile(`^\$\{([A-Za-z0-9_.]+)\}`)

// resolve replaces variables from the last to the first, so that what one
// yields may become part of the name of another: phpdotenv does so. One that
// is not known stays as it is, and is returned as missing.
func (t dotenvText) resolve(lookup func(string) (string, bool)) (s, missing string) {
	s = t.chars
	for i := len(t.vars) - 1; i >= 0; i-- {
		at := t.vars[i]
		m := dotenvVariable.FindStringSubmatch(s[at:])
		if m == nil {
			continue
		}
		if value, ok := lookup(m[1]); ok {
			s = s[:at] + value + s[at+len(m[0]):]
		} else {
			missing = m[1]
		}
	}
	return s, missing
}

// dotenvToken is one token of a value; every text is a sequence of them.
var dotenvToken = regexp.MustCompile(`^(?:[\r\n]{1,1000}|[\t\v\f ]{1,1000}|[\\'"#$]|[^\s\v\\'"#$]{1,1000})`)

// A scanState is where in a value phpdotenv's automaton stands.
type scanState int

const (
	scanInitial scanState = iota
	scanUnquoted
	scanSingle
	scanDouble
	scanEscape
	scanSpace // after the value: blanks or a comment only
	scanComment
)

var (
	errDotenvQuote  = errors.New("has a quote that is not closed")
	errDotenvEscape = errors.New(`has an escape other than \" \\ \$ \f \n \r \t \v within double quotes`)
	errDotenvSpace  = errors.New("has text after the value's end; a value with blanks needs quotes")
)

// scanDotenvValue reads a value that is trimmed and not empty.
func scanDotenvValue(raw string) (dotenvText, error) {
	var b strings.Builder
	var vars []int
	state := scanInitial
	for raw != "" {
		token := dotenvToken.FindString(raw)
		raw = raw[len(token):]
		chars, isVar, next, err := scanDotenvToken(state, token)
		if err != nil {
			return dotenvText{}, err
		}
		if isVar {
			vars = append(vars, b.Len())
		}
		b.WriteString(chars)
		state = next
	}
	switch state {
	case scanSingle, scanDouble, scanEscape:
		return dotenvText{}, errDotenvQuote
	}
	return dotenvText{chars: b.String(), vars: vars}, nil
}

// scanDotenvToken is one step: what the token adds to the value, whether that
// may begin a variable, and the next state.
func scanDotenvToken(state scanState, token string) (chars string, isVar bool, next scanState, err error) {
	switch state {
	case scanInitial, scanUnquoted:
		switch {
		case state == scanInitial && token == "'":
			return "", false, scanSingle, nil
		case state == scanInitial && token == `"`:
			return "", false, scanDouble, nil
		case token == "#":
			return "", false, scanComment, nil
		case state == scanUnquoted && isSpace(token):
			return "", false, scanSpace, nil
		}
		return token, token == "$", scanUnquoted, nil
	case scanSingle:
		if token == "'" {
			return "", false, scanSpace, nil
		}
		return token, false, scanSingle, nil
	case scanDouble:
		switch token {
		case `"`:
			return "", false, scanSpace, nil
		case `\`:
			return "", false, scanEscape, nil
		}
		return token, token == "$", scanDouble, nil
	case scanEscape:
		if token == `"` || token == `\` || token == "$" {
			return token, false, scanDouble, nil
		}
		if i := strings.IndexByte("fnrtv", token[0]); i >= 0 {
			return "\f\n\r\t\v"[i:i+1] + token[1:], false, scanDouble, nil
		}
		return "", false, state, errDotenvEscape
	case scanSpace:
		switch {
		case token == "#":
			return "", false, scanComment, nil
		case !isSpace(token):
			return "", false, state, errDotenvSpace
		}
	}
	return "", false, state, nil
}
