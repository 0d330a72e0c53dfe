package provider

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// TestVectors holds presets against signatures that others made and published.
// Where they come from stands with each.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		preset, from, secret string
		header               map[string]string
		body                 string
		target               string
		at                   time.Time
	}{
		{
			preset: "github", from: "GitHub's page on validating deliveries", secret: "It's a Secret to Everybody",
			header: map[string]string{"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			body:   "Hello, World!",
		},
		{
			preset: "bitbucket", from: "Atlassian's page on managing webhooks", secret: "It's a Secret to Everybody",
			header: map[string]string{"X-Hub-Signature": "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9"},
			body:   "Hello World!",
		},
		{
			preset: "hubspot", from: "HubSpot's page on validating requests, version 1", secret: "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy",
			header: map[string]string{"X-HubSpot-Signature": "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de"},
			body:   `[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]`,
		},
		{
			preset: "hubspot", from: "the tests of an independent receiver, version 3 with escapes in the URL", secret: "test-secret",
			header: map[string]string{"X-HubSpot-Signature-v3": "FhSZmmHFCVseGt3WeM6l5TdvzRxyHG3Or+1Udj4PokI=", "X-HubSpot-Request-Timestamp": "1700000000000"},
			body:   `{"hello":"world"}`, target: "/path?q=%3a%2F%3f%40%21%24%27%28%29%2A%2c%3B&keep=%20%26%3D%25", at: time.Unix(1_700_000_000, 0),
		},
		{
			preset: "wise", from: "Wise's signature examples, the sandbox's key",
			secret: `MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwpb91cEYuyJNQepZAVfP
ZIlPZfNUefH+n6w9SW3fykqKu938cR7WadQv87oF2VuT+fDt7kqeRziTmPSUhqPU
ys/V2Q1rlfJuXbE+Gga37t7zwd0egQ+KyOEHQOpcTwKmtZ81ieGHynAQzsn1We3j
wt760MsCPJ7GMT141ByQM+yW1Bx+4SG3IGjXWyqOWrcXsxAvIXkpUD/jK/L958Cg
nZEgz0BSEh0QxYLITnW1lLokSx/dTianWPFEhMC9BgijempgNXHNfcVirg1lPSyg
z7KqoKUN0oHqWLr2U1A+7kqrl6O2nx3CKs1bj1hToT1+p4kcMoHXA7kA+VBLUpEs
VwIDAQAB`,
			header: map[string]string{"X-Signature-SHA256": "wKcKCYXAzxNgiu7xmoDm943NUni7Rz33QN8JkEA9dWSGebgndonabgSj18Y4C08OrwVmueGsED2s00M7DtJVcYKOS1i3G4TMVx+mgM3aL9djMBkQtiYNBFUd6wrPI7ZUNHv/TrlKSjTMc+6JFvUvJ7owY3z85e3I4jLRLJowMFvO8kvCJ60+1pY9wDwZvtZ//WS93LrwGjk9Dvwzpmu0w+P4J75tETT5qC3Uv0y5G2yO8SEoO3yNP/tg/BOli02niHb53vEOUWUb9bly6thnfMoXoiV/osoGxgF20R58RlvkAmezyyl1Sv542TfS2DpiwVnmjjjkCyXeSUcKookYLQ=="},
			body:   `{"data":{"resource":{"id":49983981,"profile_id":16055450,"account_id":14124090,"type":"transfer"},"current_state":"incoming_payment_waiting","previous_state":null,"occurred_at":"2021-08-23T10:12:50Z"},"subscription_id":"90aa8e14-4ef1-4a56-861c-f3c9cde097ea","event_type":"transfers#state-change","schema_version":"2.0.0","sent_at":"2021-08-23T10:12:50Z"}`,
		},
		{
			preset: "midtrans", from: "the inputs of Midtrans' documentation, as Omnipay's and others' tests have them", secret: "askvnoibnosifnboseofinbofinfgbiufglnbfg",
			body: `{"status_code":"200","transaction_id":"249fc620-6017-4540-af7c-5a1c25788f46","order_id":"1111","gross_amount":"100000.00","transaction_status":"capture","fraud_status":"accept","signature_key":"edc076b21793ebe3e17926350f5b8ae67d902fe657b3d0aa31b932d5c127e2375d308a2bc94f3265ac2d80a1f181a79b997ac178a236fcff35af263fc4d4c231"}`,
		},
	} {
		t.Run(v.preset, func(t *testing.T) {
			p, err := Get(v.preset)
			if err != nil {
				t.Fatal(err)
			}
			o := verify.Options{Secrets: secrets(v.secret), PublicURL: "https://example.test"}
			verifier, err := verify.Compile(p.Verify, o)
			if err != nil {
				t.Fatal(err)
			}
			d := &delivery.Delivery{Method: "POST", Target: cmp.Or(v.target, "/"), Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(v.body), Arrived: cmp.Or(v.at, now)}
			for name, value := range v.header {
				d.Header.Set(name, value)
			}
			if err := verifier.Verify(context.Background(), d); err != nil {
				t.Errorf("%s: %v", v.from, err)
			}
			d.Body = []byte(strings.Replace(v.body, "l", "1", 1) + " ")
			d.Body = []byte(strings.Replace(string(d.Body), `"1111"`, `"1112"`, 1))
			if verifier.Verify(context.Background(), d) == nil {
				t.Error("a changed body is accepted")
			}
		})
	}
}
