package verify

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A publicURL knows the URL that a sender was told, which is not the one that
// arrives behind a load balancer.
type publicURL struct {
	variants []string // of the part before the target; the first as configured
	escapes  []string // percent-escapes that the sender undoes before it signs
}

var escapeShape = regexp.MustCompile(`^%[0-9A-F]{2}$`)

func compileURL(text, port, decode string) (*publicURL, error) {
	if text == "" {
		return nil, errors.New("this scheme signs the URL: set public_url to the scheme and host that the sender was told")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, errors.New("public_url: has to be like https://shop.example, without query or user")
	}
	if port != "" && port != "either" {
		return nil, fmt.Errorf("port: %q is not either", port)
	}
	p := &publicURL{escapes: strings.Fields(decode)}
	for _, esc := range p.escapes {
		if !escapeShape.MatchString(esc) {
			return nil, fmt.Errorf("decode: %q is no percent-escape", esc)
		}
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	p.variants = []string{u.Scheme + "://" + u.Host + path}
	if port == "either" {
		host, _ := strings.CutSuffix(u.Host, ":"+u.Port())
		written := u.Port()
		if written == "" {
			written = map[string]string{"https": "443", "http": "80"}[u.Scheme]
		}
		for _, v := range []string{u.Scheme + "://" + host + path, u.Scheme + "://" + host + ":" + written + path} {
			if !slices.Contains(p.variants, v) {
				p.variants = append(p.variants, v)
			}
		}
	}
	return p, nil
}

// of returns the URLs under which the target may have been signed.
func (p *publicURL) of(target string) ([]string, error) {
	if !strings.HasPrefix(target, "/") {
		return nil, &Error{Kind: Malformed, Place: "target", Detail: "doesn't begin with a slash"}
	}
	urls := make([]string, len(p.variants))
	for i, v := range p.variants {
		urls[i] = v + target
		if len(p.escapes) > 0 {
			urls[i] = decodeEscapes(urls[i], p.escapes)
		}
	}
	return urls, nil
}

// decodeEscapes undoes the listed percent-escapes, in either case.
func decodeEscapes(text string, list []string) string {
	pairs := make([]string, 0, 4*len(list))
	for _, esc := range list {
		if plain, err := url.PathUnescape(esc); err == nil {
			pairs = append(pairs, esc, plain, strings.ToLower(esc), plain)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
