package proxy_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
	"oncegate/proxy"
)

// TestForesee: what is foreseen is what the handler then answers.
func TestForesee(t *testing.T) {
	const yaml = `
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: ` + secret + `}
  slack: {path: /slack, provider: slack, secrets: ` + secret + `}
  asana: {path: /asana, provider: asana, secrets: ` + secret + `}
  sns: {path: /sns, provider: amazon-sns, params: {topic_arn: "arn:aws:sns:us-east-1:1:t"}}
  watched: {path: /watched, provider: mollie-classic}
  forwards: {path: /forwards, secrets: ` + secret + `, verify: {hmac: sha256, header: X-Sig}, key: {json: /id}, on_missing_key: forward, max_body: 64B}
`
	r := newRig(t, newApp(t), newMem(), yaml)
	c := r.load("namespace: shop\n" + yaml)
	long := `{"x":"` + strings.Repeat("x", 64) + `"}`
	unix := func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
	slack := func(body string, at time.Time) *http.Request {
		stamp := unix(at)
		return r.post("/slack", body, "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+mac(secret, "v0:"+stamp+":"+body))
	}
	put := r.stripe(`{"id":"evt_2"}`)
	put.Method = http.MethodPut
	hop := r.post("/forwards", `{"id":"h"}`, "Connection", "X-Sig", "X-Sig", mac(secret, `{"id":"h"}`))
	for _, q := range []struct {
		name  string
		req   *http.Request
		fresh bool // the Gate decides, and lets it through
	}{
		{"an event", r.stripe(`{"id":"evt_1"}`), true},
		{"unsigned", r.post("/stripe/webhook", `{"id":"evt_1"}`), false},
		{"signed by another", r.post("/stripe/webhook", `{}`, "Stripe-Signature", stripeSignature("other", "{}", now())), false},
		{"signed long ago", r.post("/stripe/webhook", `{}`, "Stripe-Signature", stripeSignature(secret, "{}", now().Add(-time.Hour))), false},
		{"no key", r.stripe(`{"id":null}`), false},
		{"no JSON", r.stripe(`{"id":`), false},
		{"another method", put, false},
		{"too large", r.post("/forwards", long, "X-Sig", mac(secret, long)), false},
		{"no key, and forwarded", r.post("/forwards", `{}`, "X-Sig", mac(secret, `{}`)), false},
		{"a header named by Connection", hop, false},
		{"B75 a signed handshake", slack(`{"type":"url_verification","challenge":"c"}`, now()), false},
		{"B75 an unsigned one", r.post("/asana", `{}`, "X-Hook-Secret", "s"), false},
		{"B75 one whose signature is wrong", r.post("/slack", `{"type":"url_verification","challenge":"c"}`, "X-Slack-Request-Timestamp", unix(now()), "X-Slack-Signature", "v0="+strings.Repeat("00", 32)), false},
		{"a status that the provider understands", r.post("/sns", `{"Type":"Notification"}`), false},
		{"observed", r.post("/watched", "id=tr_1"), false},
	} {
		t.Run(q.name, func(t *testing.T) {
			d := &delivery.Delivery{Method: q.req.Method, Target: q.req.URL.RequestURI(), Host: q.req.URL.Host, Header: q.req.Header, Body: []byte(bodyOf(t, q.req)), Arrived: now()}
			f := proxy.Foresee(t.Context(), proxy.RouteOf(c, d.Target), d)
			got := r.send(q.req)
			status, word := f.Status, string(f.Result)
			if status == 0 {
				status = 200
			}
			if q.fresh && word == "" && f.Err == nil {
				word = "fresh"
			}
			if got.status != status || got.result != word {
				t.Errorf("foreseen %d %q (%v), got %d %q", status, word, f.Err, got.status, got.result)
			}
		})
	}
	t.Run("what is no delivery", func(t *testing.T) {
		d := &delivery.Delivery{Method: http.MethodGet, Target: "/stripe/webhook"}
		if f := proxy.Foresee(t.Context(), proxy.RouteOf(c, d.Target), d); !f.Passes {
			t.Errorf("%+v", f)
		}
		if proxy.RouteOf(c, "/elsewhere") != nil || proxy.RouteOf(c, "//stripe/./webhook/?x") == nil {
			t.Error("another route than the handler's")
		}
	})
}
