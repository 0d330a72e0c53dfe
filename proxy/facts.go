package proxy

import (
	"net/http"
	"strings"

	"oncegate/internal/telemetry"
)

// retryHeaders are those in which providers say which try a delivery is, and
// why it is made.
var retryHeaders = []string{
	"X-Slack-Retry-Num", "X-Slack-Retry-Reason",
	"Square-Retry-Number", "Square-Retry-Reason",
	"X-Contentful-Webhook-Request-Attempt", "X-Attempt-Number", "X-Atlassian-Webhook-Retry",
	"X-Retry-Count", "X-Webhook-Attempt", "Webhook-Attempt",
}

// maxRetryValue bounds what is kept of one of them.
const maxRetryValue = 64

// facts notes of the delivery what evidence keeps beside what was decided.
func (p *passage) facts() {
	p.out.Remote = remote(p.t.config.TrustedProxies, p.req)
	p.out.Retry = retries(p.req.Header)
	attempted := p.out.Result == telemetry.ResultFresh || p.out.Result == telemetry.ResultFailed
	p.out.Slow = attempted && p.r.Patience > 0 && p.out.Total > p.r.Patience
}

// retries returns what the sender says of which try this is; empty for most.
func retries(h http.Header) string {
	var said []string
	for _, name := range retryHeaders {
		if v := h[name]; len(v) == 1 && len(v[0]) <= maxRetryValue && printable(v[0]) {
			said = append(said, strings.ToLower(name)+": "+v[0])
		}
	}
	return strings.Join(said, ", ")
}

// printable reports whether a text is visible ASCII and spaces.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
