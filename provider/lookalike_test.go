package provider

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// TestSNSHosts: certificates come from Amazon SNS in any region, and from nobody
// whose bucket or host has a name like it.
func TestSNSHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"sns.us-east-1.amazonaws.com": true, "sns.eu-central-2.amazonaws.com": true, "sns.us-gov-west-1.amazonaws.com": true,
		"sns.ap-southeast-5.amazonaws.com": true, "sns.cn-north-1.amazonaws.com.cn": true,
		"sns.s3.amazonaws.com": false, "sns.s3-us-west-2.amazonaws.com": false, "sns.s3-accelerate.amazonaws.com": false,
		"sns.s3.amazonaws.com.cn": false, "sns.us-east-1.amazonaws.com.evil.example": false, "sns.us-east-1.evil.amazonaws.com": false,
	} {
		t.Run("B18 "+host, func(t *testing.T) {
			b := get(t, "amazon-sns")
			d := b.sample(strings.Replace(b.Sample.Body, "sns.us-west-2.amazonaws.com", host, 1))
			// The certificate is there, and the signature fits, wherever it is looked for.
			if got := b.verifier.Verify(context.Background(), b.sign(t, d, now)) == nil; got != want {
				t.Errorf("verified: %t", got)
			}
		})
	}
}

// TestUnsignedQuery: what may not stand in the body of an unsigned handshake may
// not stand in its query either, where Laravel finds it just as well.
func TestUnsignedQuery(t *testing.T) {
	t.Run("B75 asana", func(t *testing.T) {
		p, err := Get("asana")
		if err != nil {
			t.Fatal(err)
		}
		match, err := keyextract.CompileCondition(p.Handshakes[0].When)
		if err != nil {
			t.Fatal(err)
		}
		for target, want := range map[string]bool{"/asana": true, "/asana?project=7": true, "/asana?events=1": false, "/asana?events[0][action]=deleted": false} {
			d := &delivery.Delivery{Method: "POST", Target: target, Header: http.Header{"X-Hook-Secret": {"s"}}, Body: []byte(`{}`)}
			if holds, _ := match.Holds(keyextract.Parse(d)); holds != want {
				t.Errorf("%s: a handshake: %t", target, holds)
			}
		}
	})
}
