package proxy_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
)

// TestTheShop runs the whole example of docs/providers.md: each of its senders
// delivers an event twice, and the app sees it once.
func TestTheShop(t *testing.T) {
	page, err := os.ReadFile("../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- example: shop -->\n```yaml\n")
	text, _, found := strings.Cut(rest, "```\n<!-- end -->")
	if !found {
		t.Fatal("docs/providers.md has no example")
	}
	r := newRig(t, newApp(t), newMem(), stripeRoute)
	file := filepath.Join(t.TempDir(), "oncegate.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(text, "http://127.0.0.1:8000", r.url, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: file, Env: []string{
		"STATE_DIRECTORY=" + t.TempDir(), "STRIPE_WEBHOOK_SECRET=" + secret, "PAYPAL_WEBHOOK_ID=9XL90610J3647323C", "SHOPIFY_API_SECRET=shpss_1",
		"GITHUB_WEBHOOK_SECRET=s", "TWILIO_AUTH_TOKEN=12345", "ADYEN_HMAC_KEY=44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", "ACME_SECRET=a",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, route := range c.Routes {
		sign := route.Verifier
		if route.Name == "paypal" {
			route.Verifier, sign = standIn(t, route.Preset.Verify, map[string]string{"webhook_id": "9XL90610J3647323C"})
		}
		if err := r.handler.Reload(c); err != nil {
			t.Fatal(err)
		}
		d := &delivery.Delivery{Method: "POST", Target: route.Path, Header: http.Header{}, Body: []byte(`{"account":{"id":"a"},"event":{"id":"e"}}`)}
		if route.Preset != nil {
			d = route.Preset.Delivery(route.Path)
			d.Target = route.Path
		}
		for _, result := range []string{"fresh", "replay", "replay"} {
			signed, err := sign.Complete(d, time.Now())
			if err != nil {
				t.Fatalf("%s: %v", route.Name, err)
			}
			req := r.post(signed.Target, string(signed.Body))
			req.Header = signed.Header
			r.expect(req, 200, result)
		}
		r.hits(i + 1)
		if event := r.app.last(t).header.Get("Oncegate-Event"); !strings.HasPrefix(event, route.Name+":") {
			t.Errorf("%s: the app was told %q", route.Name, event)
		}
	}
}
