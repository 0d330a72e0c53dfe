package verify

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"oncegate/internal/delivery"
)

// Hints says what is likely wrong with a delivery that Verify refuses, for a
// person who looks into it: it tries what usually goes wrong, one thing at a
// time, and names what would have made the signature fit. A hint holds nothing
// of a secret or a body.
func (v *Verifier) Hints(ctx context.Context, d *delivery.Delivery) []string {
	if v == nil || v.Verify(ctx, d) == nil {
		return nil
	}
	var hints []string
	for _, try := range bodies {
		if body := try.change(d.Body); !bytes.Equal(body, d.Body) && v.fitsBody(ctx, d, body) {
			hints = append(hints, try.hint)
			break // others give the same bytes
		}
	}
	for _, encoding := range []string{"text", "hex", "base64", "whsec"} {
		if v.fitsOtherwise(ctx, d, func(s *Spec) { s.Encoding = encoding }, v.options) {
			hints = append(hints, "the signature fits where the secret is read as "+encoding+": set encoding: "+encoding)
		}
	}
	o := v.options
	o.Secrets = trimmed(v.options.Secrets)
	if v.fitsOtherwise(ctx, d, nil, o) {
		hints = append(hints, "the signature fits where the secret loses the blanks around it: remove them")
	}
	return append(hints, v.urlHints(ctx, d)...)
}

// urlHints tries other URLs that the sender may have been told.
func (v *Verifier) urlHints(ctx context.Context, d *delivery.Delivery) (hints []string) {
	for _, public := range urls(v.options.PublicURL, d.Host) {
		o := v.options
		o.PublicURL = public
		if v.fitsOtherwise(ctx, d, nil, o) {
			hints = append(hints, "the signature fits for "+public+": set public_url to what the sender was told")
		}
	}
	if v.options.PublicURL == "" {
		return hints // no URL is signed
	}
	path, query := d.RawPath(), ""
	if d.RawQuery() != "" {
		query = "?" + d.RawQuery()
	}
	for _, try := range []struct{ target, hint string }{
		{path + "/" + query, "with a slash at the path's end"},
		{strings.TrimSuffix(path, "/") + query, "without the slash at the path's end"},
		{path, "without the query"},
	} {
		c := *d
		if c.Target = try.target; c.Target != d.Target && v.Verify(ctx, &c) == nil {
			hints = append(hints, "the signature fits for the URL "+try.hint+": the sender was told another than arrives")
		}
	}
	return hints
}

// bodies are the ways in which a body is changed on its way.
var bodies = []struct {
	hint   string
	change func([]byte) []byte
}{
	{"the signature fits without the newline at the end of the body: something added it on the way", func(b []byte) []byte {
		return bytes.TrimRight(b, "\r\n")
	}},
	{"the signature fits with a newline at the end of the body: something took it away", func(b []byte) []byte {
		return append(slices.Clone(b), '\n')
	}},
	{"the signature fits with CRLF line ends: something changed them on the way", func(b []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}},
	{"the signature fits with LF line ends: something changed them on the way", func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}},
	{"the signature fits without the byte order mark: something put it before the body", func(b []byte) []byte {
		return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}},
	{"the signature fits where the JSON has no white space: something wrote the body anew", func(b []byte) []byte {
		compact := jsontext.Value(slices.Clone(b))
		if compact.Compact(jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true)) != nil {
			return b
		}
		return compact
	}},
	{"the signature fits where the JSON is written as JavaScript writes it: something wrote the body anew", javaScript.rewrite},
	{"the signature fits where the JSON is written as PHP writes it: something wrote the body anew", php.rewrite},
	{"the signature fits where the JSON is written as Python writes it: something wrote the body anew", python.rewrite},
	{"the signature fits where the JSON is written as Go writes it: something wrote the body anew", golang.rewrite},
	{"the signature fits where the form's blanks are written as +: something wrote the body anew", func(b []byte) []byte {
		return rewriteForm(b, "+")
	}},
	{"the signature fits where the form's blanks are written as %20: something wrote the body anew", func(b []byte) []byte {
		return rewriteForm(b, "%20")
	}},
	{"the signature fits where the body is in ISO 8859-1: something made UTF-8 of it", asLatin1},
	{"the signature fits where the body is in UTF-8: something made ISO 8859-1 of it", asUTF8},
}

func (v *Verifier) fitsBody(ctx context.Context, d *delivery.Delivery, body []byte) bool {
	c := *d
	c.Body = body
	return v.Verify(ctx, &c) == nil
}

// fitsOtherwise reports whether the delivery passes where the schemes or the
// options are others.
func (v *Verifier) fitsOtherwise(ctx context.Context, d *delivery.Delivery, change func(*Spec), o Options) bool {
	specs := slices.Clone(v.specs)
	if change != nil {
		changeAll(specs, change)
	}
	other, err := Compile(specs, o)
	return err == nil && other.Verify(ctx, d) == nil
}

// changeAll changes every spec that has a secret, alternatives included.
func changeAll(specs []Spec, change func(*Spec)) {
	for i := range specs {
		specs[i].Any = slices.Clone(specs[i].Any)
		changeAll(specs[i].Any, change)
		if specs[i].HMAC != "" || specs[i].Hash != "" {
			change(&specs[i])
		}
	}
}

// trimmed is the same source of secrets, without the blanks around them.
func trimmed(source Secrets) Secrets {
	return func() ([]string, error) {
		if source == nil {
			return nil, errNoSecret
		}
		texts, err := source()
		texts = slices.Clone(texts)
		for i := range texts {
			texts[i] = strings.TrimSpace(texts[i])
		}
		return texts, err
	}
}

// urls are what else public_url could have to be.
func urls(public, host string) []string {
	var all []string
	for _, scheme := range []string{"https://", "http://"} {
		for _, h := range []string{host, strings.TrimPrefix(strings.TrimPrefix(public, "https://"), "http://")} {
			if url := scheme + h; h != "" && url != public && !slices.Contains(all, url) {
				all = append(all, url)
			}
		}
	}
	return all
}
