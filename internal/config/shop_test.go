package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShopExample: the whole example of docs/providers.md has no fault, and is
// what its comments say.
func TestShopExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- example: shop -->\n```yaml\n")
	text, _, closed := strings.Cut(rest, "```\n<!-- end -->")
	if !found || !closed {
		t.Fatal("docs/providers.md has no example")
	}
	file := filepath.Join(t.TempDir(), "oncegate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Options{Path: file, Env: []string{
		"STATE_DIRECTORY=" + t.TempDir(), "STRIPE_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "PAYPAL_WEBHOOK_ID=9XL90610J3647323C",
		"SHOPIFY_API_SECRET=shpss_0123456789abcdef", "GITHUB_WEBHOOK_SECRET=It's a Secret to Everybody", "TWILIO_AUTH_TOKEN=12345",
		"ADYEN_HMAC_KEY=44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", "ACME_SECRET=acme-secret",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if len(c.Routes) != 7 {
		t.Fatalf("%d routes", len(c.Routes))
	}
	for _, r := range c.Routes {
		if r.Mode != ModeEnforce || r.Verifier == nil || r.Rules == nil || r.Patience == 0 {
			t.Errorf("%s: %s, patience %s: %+v", r.Name, r.Mode, r.Patience, r)
		}
		if forwards := r.OnStoreOutage == "forward"; forwards != (r.Name == "github" || r.Name == "twilio") { // neither sends again what was answered
			t.Errorf("%s: on_store_outage %s", r.Name, r.OnStoreOutage)
		}
		if r.Batches != (r.Name == "adyen") || r.SplitBatches {
			t.Errorf("%s: batches %v, split %v", r.Name, r.Batches, r.SplitBatches)
		}
	}
}
