package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// An engine is the cryptography of a scheme that signs a text.
type engine interface {
	// check reports whether one of the signatures fits one of the keys. render
	// writes the signed text; a scheme that puts the secret into it gets it
	// from the engine.
	check(ctx context.Context, s *scope, render func(w io.Writer, secret []byte) error, signatures [][]byte) (bool, error)
	// signature makes one with the first key.
	signature(render func(w io.Writer, secret []byte) error) ([]byte, error)
	// accepts says what is wrong with a secret text.
	accepts(secret string) error
	// ready says what is wrong with the secrets as they are now.
	ready() error
}

// signed is a scheme that signs a text: where its signatures stand, what they
// look like, and what the text is. The cryptography is its engine's.
type signed struct {
	engine
	place    place
	format   *format
	text     *template
	lower    bool
	fields   *Fields
	within   string
	each     string
	absent   absent
	bodyHash *bodyHash
	pinned   pinned
	time     *timing
	url      *publicURL
	params   map[string]string
}

func (c *signed) plausible(h http.Header) error {
	if err := c.absent.check(h); err != nil {
		return err
	}
	s := c.scope(&request{Delivery: headerOnly(h)})
	if c.place.kind == "header" {
		if _, err := c.read(s); err != nil {
			return err
		}
	}
	if c.time != nil && c.time.place.kind == "header" {
		text, err := c.time.place.one(s)
		if err != nil {
			return err
		}
		if _, err := c.time.parse(text); err != nil {
			return err
		}
	}
	return nil
}

func (c *signed) scope(r *request) *scope {
	return &scope{r: r, within: c.within, params: c.params, fields: c.fields}
}

// read takes the signatures from their place: at least one.
func (c *signed) read(s *scope) (given, error) {
	lines, err := c.place.lines(s)
	if err != nil {
		return given{}, err
	}
	g, err := c.format.read(lines)
	if err != nil {
		return given{}, &Error{Kind: Malformed, Place: c.place.String(), Err: err}
	}
	if len(g.signatures) == 0 {
		return given{}, &Error{Kind: Malformed, Place: c.place.String(), Detail: "no signature of the known form"}
	}
	if c.format.carriesTime() {
		if !g.hasTime {
			return given{}, &Error{Kind: Malformed, Place: c.place.String(), Detail: "no time of signing"}
		}
		if _, err := c.time.parse(g.time); err != nil {
			return given{}, err
		}
	}
	return g, nil
}

func (c *signed) verify(ctx context.Context, r *request) error {
	if err := c.plausible(r.Header); err != nil {
		return err
	}
	if err := c.bodyHash.check(r); err != nil {
		return err
	}
	if err := c.pinned.check(c.scope(r)); err != nil {
		return err
	}
	scopes, err := c.scopes(r)
	if err != nil {
		return err
	}
	for _, s := range scopes {
		if err := c.verifyOne(ctx, s); err != nil {
			return s.ofItem(err)
		}
	}
	return nil
}

// ofItem says in the error which item it is about.
func (s *scope) ofItem(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || s.item == 0 {
		return err
	}
	of := *e
	of.Detail = strings.TrimSuffix(fmt.Sprintf("item %d: %s", s.item, e.Detail), ": ")
	return &of
}

// scopes returns what is signed: the delivery as a whole, or each item.
func (c *signed) scopes(r *request) ([]*scope, error) {
	if c.each == "" {
		return []*scope{c.scope(r)}, nil
	}
	doc, err := r.json(c.within)
	if err != nil {
		return nil, err
	}
	items, err := doc.items(c.each)
	if err != nil {
		return nil, err
	}
	scopes := make([]*scope, len(items))
	for i := range items {
		scopes[i] = c.scope(r)
		scopes[i].doc, scopes[i].item = &items[i], i+1
	}
	return scopes, nil
}

func (c *signed) verifyOne(ctx context.Context, s *scope) error {
	g, err := c.read(s)
	if err != nil {
		return err
	}
	if s.time, err = c.timeText(s, g); err != nil {
		return err
	}
	urls := []string{""}
	if c.url != nil {
		if urls, err = c.url.of(s.r.Target); err != nil {
			return err
		}
	}
	fits := false
	for _, s.url = range urls {
		ok, err := c.check(ctx, s, c.render(s), g.signatures)
		if s.r.trace != nil {
			c.explain(s, g, ok, err)
		}
		if err != nil {
			return err
		}
		if fits = ok; fits {
			break
		}
	}
	if !fits {
		return &Error{Kind: Mismatch, Place: c.place.String(), Detail: "no signature fits"}
	}
	if c.time != nil {
		// After the signature, so that Stale says: genuine, but out of time.
		return c.time.judge(s.time, s.r.Arrived)
	}
	return nil
}

// timeText returns the time of signing as it was written.
func (c *signed) timeText(s *scope, g given) (string, error) {
	switch {
	case c.time == nil:
		return "", nil
	case c.time.place.kind == "":
		return g.time, nil
	}
	text, err := c.time.place.one(s)
	if err != nil {
		return "", err
	}
	_, err = c.time.parse(text)
	return text, err
}

// render returns a function that writes the signed text.
func (c *signed) render(s *scope) func(io.Writer, []byte) error {
	return func(w io.Writer, secret []byte) error {
		s.secret = secret
		defer func() { s.secret = nil }()
		if !c.lower {
			return c.text.render(w, s)
		}
		var b bytes.Buffer
		if err := c.text.render(&b, s); err != nil {
			return err
		}
		_, err := w.Write(bytes.ToLower(b.Bytes()))
		return err
	}
}

func (c *signed) judges() bool { return c.time != nil && c.time.tolerance > 0 }

// errNoTime says that a format or a template wants a time that nothing gives.
var errNoTime = errors.New("{time} is used, and no time: says where it stands")
