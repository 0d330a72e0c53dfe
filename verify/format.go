package verify

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// maxSignatures bounds how many signatures of one delivery are looked at, what
// is ignored in their list included. A delivery that brings more is refused.
const maxSignatures = 64

// A format is what a signature looks like on a header line, or elsewhere.
type format struct {
	list  string // separates items; empty where there is no list
	items []pattern
	size  int // of a signature in bytes; 0 where it varies
}

// A pattern is one item of a format: literal text and placeholders in turn.
type pattern []token

type token struct {
	literal string
	kind    string // hex, HEX, base64, base64url, time, any, or "" for a literal
}

// parseFormat reads "t={time},v1={hex}" with its list separator.
func parseFormat(text, list string, size int) (*format, error) {
	if text == "" {
		text = "{hex}"
	}
	f := &format{list: list, size: size}
	parts := []string{text}
	if list != "" {
		parts = strings.Split(text, list)
	}
	signatures := 0
	for _, part := range parts {
		p, err := parsePattern(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for _, tok := range p {
			if tok.isSignature() {
				signatures++
			}
		}
		f.items = append(f.items, p)
	}
	if signatures != 1 {
		return nil, fmt.Errorf("format %q: one of {hex}, {HEX}, {base64}, {base64url} has to occur once", text)
	}
	return f, nil
}

func parsePattern(text string) (pattern, error) {
	var p pattern
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if literal != "" {
			p = append(p, token{literal: literal})
		}
		if !found {
			break
		}
		if literal == "" && len(p) > 0 {
			return nil, errors.New("format: two placeholders side by side")
		}
		kind, after, ok := strings.Cut(rest, "}")
		tok := token{kind: kind}
		if !ok || !tok.isSignature() && kind != "time" && kind != "any" {
			return nil, fmt.Errorf("format: unknown placeholder {%s}", kind)
		}
		p, text = append(p, tok), after
	}
	return p, nil
}

func (t token) isSignature() bool {
	return t.kind == "hex" || t.kind == "HEX" || t.kind == "base64" || t.kind == "base64url"
}

// A given is what a delivery brings along.
type given struct {
	signatures [][]byte
	texts      []string // the same as they were written
	time       string   // {time} of the format
	hasTime    bool
}

// errTooMany and errTwoTimes say why lines are refused as a whole.
var (
	errTooMany  = errors.New("more than 64 signatures")
	errTwoTimes = errors.New("two times of signing")
)

// read takes signatures out of lines. Items that fit no pattern are ignored:
// versions that are not known, signatures that can't be decoded.
func (f *format) read(lines []string) (given, error) {
	var g given
	seen := 0
	for _, line := range lines {
		items := []string{line}
		if f.list != "" {
			items = strings.Split(line, f.list)
		}
		if seen += len(items); seen > maxSignatures {
			return given{}, errTooMany
		}
		for _, item := range items {
			// Senders put a blank, or a comma where the list has blanks, behind
			// an item.
			item = strings.Trim(item, " \t")
			if f.list == " " {
				item = strings.TrimSuffix(item, ",")
			}
			if err := f.item(item, &g); err != nil {
				return given{}, err
			}
		}
	}
	return g, nil
}

func (f *format) item(item string, g *given) error {
	for _, p := range f.items {
		m, ok := p.match(item, f.size)
		if !ok {
			continue
		}
		if m.hasTime {
			if g.hasTime {
				return errTwoTimes
			}
			g.time, g.hasTime = m.time, true
		}
		g.signatures = append(g.signatures, m.signatures...)
		g.texts = append(g.texts, m.texts...)
		return nil
	}
	return nil
}

// match holds an item against the pattern.
func (p pattern) match(item string, size int) (given, bool) {
	var g given
	for i, tok := range p {
		if tok.kind == "" {
			rest, ok := strings.CutPrefix(item, tok.literal)
			if !ok {
				return given{}, false
			}
			item = rest
			continue
		}
		text, rest := item, ""
		if i+1 < len(p) {
			at := strings.Index(item, p[i+1].literal)
			if at < 0 {
				return given{}, false
			}
			text, rest = item[:at], item[at:]
		}
		item = rest
		switch tok.kind {
		case "any":
		case "time":
			// What stands here is judged later. A list whose items have no
			// names tells a time from a signature by its shape.
			if len(p) == 1 && !digits(text) {
				return given{}, false
			}
			g.time, g.hasTime = text, true
		default:
			sig, ok := tok.decode(text)
			if !ok || len(sig) == 0 || size > 0 && len(sig) != size {
				return given{}, false
			}
			g.signatures, g.texts = append(g.signatures, sig), append(g.texts, text)
		}
	}
	return g, item == ""
}

// decode reads a signature's text. Hex may be in either case; base64 has to be
// written as an encoder writes it, so that one signature has one text.
func (t token) decode(text string) (sig []byte, ok bool) {
	var err error
	switch {
	case strings.ContainsAny(text, "\r\n"):
		return nil, false
	case t.kind == "base64":
		sig, err = base64.StdEncoding.Strict().DecodeString(text)
	case t.kind == "base64url":
		sig, err = base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(text, "="))
	default:
		sig, err = hex.DecodeString(text)
	}
	return sig, err == nil
}

func (t token) encode(sig []byte) string {
	switch t.kind {
	case "base64":
		return base64.StdEncoding.EncodeToString(sig)
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(sig)
	case "HEX":
		return strings.ToUpper(hex.EncodeToString(sig))
	}
	return hex.EncodeToString(sig)
}

// write makes the text that read takes apart.
func (f *format) write(sig []byte, time string) string {
	items := make([]string, len(f.items))
	for i, p := range f.items {
		for _, tok := range p {
			switch {
			case tok.kind == "":
				items[i] += tok.literal
			case tok.kind == "time":
				items[i] += time
			case tok.kind == "any":
				items[i] += "oncegate"
			default:
				items[i] += tok.encode(sig)
			}
		}
	}
	return strings.Join(items, f.list)
}

// carriesTime reports whether the signature says when it was made.
func (f *format) carriesTime() bool {
	for _, p := range f.items {
		for _, tok := range p {
			if tok.kind == "time" {
				return true
			}
		}
	}
	return false
}

// digits reports whether s is a decimal number and nothing else.
func digits(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// encode writes a signature alone.
func (f *format) encode(sig []byte) string {
	for _, p := range f.items {
		for _, tok := range p {
			if tok.isSignature() {
				return tok.encode(sig)
			}
		}
	}
	return ""
}
