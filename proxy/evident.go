package proxy

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"oncegate/lock"
)

const (
	// maxEvident bounds what evidence keeps of the body of an answer, and of its
	// header lines.
	maxEvident = 4 << 10
	// A secret is looked for in an answer if its length lies between these.
	minSecret, maxSecret = 8, 4 << 10
)

// evident returns what evidence may keep of the app's answer: the header lines
// that a claim would keep, and the beginning of the body. A claim keeps the body
// of a 2xx, so evidence may; an answer that failed may be an error page full of
// what the request held, so its body is kept where whole requests are.
func (p *passage) evident(rep *reply) *lock.Answer {
	stored := rep.succeeded() && rep.rest == nil
	a := keep(rep.status, rep.header, nil, rep.succeeded() && !stored)
	slices.SortStableFunc(a.Header, func(x, y lock.Line) int { return strings.Compare(x.Name, y.Name) })
	secrets := p.secrets()
	room := maxEvident
	a.Header = slices.DeleteFunc(a.Header, func(l lock.Line) bool {
		room -= len(l.Name) + len(l.Value)
		return room < 0
	})
	for i := range a.Header {
		a.Header[i].Value = string(conceal([]byte(a.Header[i].Value), secrets))
	}
	if stored || rep.err == nil && rep.rest == nil && p.r.policy.KeepRequest {
		a.Body = conceal(rep.body[:min(len(rep.body), maxEvident+maxSecret)], secrets)
		a.Body = bytes.Clone(a.Body[:min(len(a.Body), maxEvident)])
	}
	return a
}

// secrets are what of the request must not be kept, should the app have put it
// into its answer: credentials, and what the route redacts.
func (p *passage) secrets() (secrets []string) {
	for _, names := range [][]string{credentials, p.r.Redact} {
		for _, name := range names {
			for _, value := range p.req.Header[http.CanonicalHeaderKey(name)] {
				secrets = append(secrets, value)
				// Without its scheme, and cookie by cookie.
				if _, alone, ok := strings.Cut(value, " "); ok {
					secrets = append(secrets, alone)
				}
				for pair := range strings.SplitSeq(value, ";") {
					if _, alone, ok := strings.Cut(pair, "="); ok {
						secrets = append(secrets, alone)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < minSecret || len(s) > maxSecret })
}

// conceal replaces secrets in a text, as far as they stand there as they came.
func conceal(text []byte, secrets []string) []byte {
	for _, s := range secrets {
		text = bytes.ReplaceAll(text, []byte(s), []byte("[redacted]"))
	}
	return text
}
