package provider

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/verify"
)

func get(t *testing.T, name string) *bench {
	t.Helper()
	p, err := Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return onBench(t, p)
}

// TestSaysWhatItIs: what a preset claims about itself fits together.
func TestSaysWhatItIs(t *testing.T) {
	for _, p := range all(t) {
		t.Run(p.Name, func(t *testing.T) {
			observed, unverified := p.Mode == "observe", verify.Unverified(p.Verify)
			for what, wrong := range map[string]bool{
				"is observed, and doesn't say why, or the other way round": observed != (p.ObserveWhy != ""),
				"is enforced without a key":                                !observed && len(p.Key) == 0,
				"is enforced without verification":                         !observed && unverified && !p.CallerRequired,
				"has a signed key and no signature":                        unverified && p.KeySigned,
				"retries never, and for a while":                           p.Retries.Never == (p.Retries.For > 0),
				"never retries, and refuses in an outage":                  p.Retries.Never && (p.OnStoreOutage != "forward" || p.OnOverload != "forward"),
				"has no method":                                            len(p.Methods) == 0 || !slices.Contains(p.Methods, p.Sample.Method),
				"is known for sure, and says what isn't":                   p.Confidence == "low" && len(p.Unconfirmed) == 0,
				"has a fixed key in the sample and none in the rule":       p.Sample.Key != "" && len(p.Key) == 0,
			} {
				if wrong {
					t.Error(what)
				}
			}
			for name, param := range p.Params {
				if param.Example == "" {
					t.Errorf("parameter %s has no example", name)
				}
			}
		})
	}
}

func form(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

// TestHandshakes: each handshake is recognised by its shape, and no event is.
func TestHandshakes(t *testing.T) {
	const formType = "application/x-www-form-urlencoded"
	shapes := map[string]*delivery.Delivery{
		"amazon-sns/SubscriptionConfirmation":     {Body: []byte(`{"Type":"SubscriptionConfirmation","SubscribeURL":"https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription"}`)},
		"amazon-sns/UnsubscribeConfirmation":      {Body: []byte(`{"Type":"UnsubscribeConfirmation","SubscribeURL":"https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription"}`)},
		"asana/secret":                            {Header: http.Header{"X-Hook-Secret": {"b537207f20cbfa02357cf448134da559"}}, Body: []byte(`{}`)},
		"asana/heartbeat":                         {Body: []byte(`{"events":[]}`)},
		"azure-event-grid/SubscriptionValidation": {Header: http.Header{"Aeg-Event-Type": {"SubscriptionValidation"}}, Body: []byte(`[{"id":"1","data":{"validationCode":"512d38b6"}}]`)},
		"braintree/challenge":                     {Method: "GET", Target: "/x?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53"},
		"discord-events/ping":                     {Body: []byte(`{"version":1,"application_id":"1","type":0}`)},
		"discord-interactions/ping":               {Body: []byte(`{"type":1}`)},
		"dropbox/challenge":                       {Method: "GET", Target: "/x?challenge=abc"},
		"dropbox-sign/callback_test":              {Header: http.Header{"Content-Type": {formType}}, Body: []byte(form("json", `{"event":{"event_type":"callback_test"}}`))},
		"intercom/ping":                           {Body: []byte(`{"topic":"ping"}`)},
		"line/verify":                             {Body: []byte(`{"destination":"x","events":[]}`)},
		"meta/challenge":                          {Method: "GET", Target: "/x?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=x"},
		"okta/verification":                       {Method: "GET", Header: http.Header{"X-Okta-Verification-Challenge": {"x"}}},
		"pagerduty/ping":                          {Body: []byte(`{"event":{"id":"1","event_type":"pagey.ping"}}`)},
		"slack/ssl_check":                         {Header: http.Header{"Content-Type": {formType}}, Body: []byte("ssl_check=1&token=x")},
		"slack/interaction-without-id":            {Header: http.Header{"Content-Type": {formType}}, Body: []byte(form("payload", `{"type":"view_closed"}`))},
		"slack/url_verification":                  {Body: []byte(`{"token":"x","challenge":"c1","type":"url_verification"}`)},
		"wise/test":                               {Header: http.Header{"X-Test-Notification": {"true"}}, Body: []byte(`{}`)},
		"woocommerce/ping":                        {Header: http.Header{"Content-Type": {formType}}, Body: []byte("webhook_id=7")},
		"xero/intent-to-receive":                  {Body: []byte(`{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"x"}`)},
		"zoom/url_validation":                     {Body: []byte(`{"event":"endpoint.url_validation","payload":{"plainToken":"q"}}`)},
	}
	for _, p := range all(t) {
		for _, h := range p.Handshakes {
			name := p.Name + "/" + h.Name
			t.Run("B75 "+name, func(t *testing.T) {
				match, err := keyextract.CompileCondition(h.When)
				if err != nil {
					t.Fatal(err)
				}
				shape := shapes[name]
				delete(shapes, name)
				if shape == nil {
					t.Fatal("nothing shows its shape")
				}
				if shape.Header == nil {
					shape.Header = http.Header{}
				}
				if holds, err := match.Holds(keyextract.Parse(shape)); !holds || err != nil {
					t.Errorf("not recognised: %v", err)
				}
				if holds, err := match.Holds(keyextract.Parse(p.Delivery("/x"))); holds || err != nil {
					t.Errorf("the event in the sample is taken for one: %v", err)
				}
				if b := onBench(t, p); b.verifier != nil && !h.Unsigned && b.verifier.Verify(context.Background(), shape) == nil {
					t.Error("passes without a signature")
				}
			})
		}
	}
	for name := range shapes {
		t.Errorf("%s: no such handshake", name)
	}
}

func TestGitHub(t *testing.T) {
	b := get(t, "github")
	d1 := b.sign(t, b.sample(""), now)
	t.Run("B08 new ID, same body", func(t *testing.T) {
		d2 := *d1
		d2.Header = d1.Header.Clone()
		d2.Header.Set("X-GitHub-Delivery", "D2")
		if err := b.verifier.Verify(context.Background(), &d2); err != nil || b.key(&d2) == b.key(d1) {
			t.Errorf("the ID is outside the signature: %v", err)
		}
		if b.KeySigned || b.OnMismatch != "refuse" {
			t.Error("the preset doesn't say so, or doesn't refuse another body under the same ID")
		}
		d2.Header.Del("X-GitHub-Delivery")
		if b.key(&d2) != "" {
			t.Error("there is a key without an ID")
		}
	})
	t.Run("B11 two hooks, one event", func(t *testing.T) {
		other := *d1
		other.Header = d1.Header.Clone()
		other.Header.Set("X-GitHub-Hook-ID", "2")
		if b.key(&other) == b.key(d1) {
			t.Error("one key")
		}
	})
	t.Run("B14 form", func(t *testing.T) {
		for _, body := range []string{form("payload", `{"id":"a b"}`), "payload=%7B%22id%22%3A%22a%20b%22%7D"} {
			d := b.sample(body)
			d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			d = b.sign(t, d, now)
			if err := b.verifier.Verify(context.Background(), d); err != nil || b.key(d) != b.key(d1) {
				t.Errorf("%q: %v, key %q", body, err, b.key(d))
			}
		}
	})
}

func TestStripeKey(t *testing.T) {
	b := get(t, "stripe")
	event := func(account, id string) string {
		body := `{"id":"` + id + `","created":1700000000,"request":{"id":"req_1","idempotency_key":"ik_1"},"data":{"object":{"id":"sub_1"}}}`
		if account != "" {
			body = `{"account":"` + account + `",` + body[1:]
		}
		return b.key(b.sample(body))
	}
	t.Run("B10 two events of one request", func(t *testing.T) {
		if event("", "evt_1") != "evt_1" || event("", "evt_2") != "evt_2" {
			t.Error("the key is not the event's ID")
		}
	})
	t.Run("B11 two accounts", func(t *testing.T) {
		if a, c := event("acct_1", "evt_1"), event("acct_2", "evt_1"); a != "acct_1/evt_1" || c != "acct_2/evt_1" {
			t.Errorf("%q, %q", a, c)
		}
	})
}

// TestObviousIDs: events that share the obvious ID have keys of their own.
func TestObviousIDs(t *testing.T) {
	for name, bodies := range map[string][2]string{
		"twilio":       {"MessageSid=SM1&MessageStatus=sent", "MessageSid=SM1&MessageStatus=delivered"},
		"adyen":        {`{"notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"S","pspReference":"1","eventCode":"AUTHORISATION","success":"true"}}]}`, `{"notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"S","pspReference":"1","eventCode":"CAPTURE","success":"true"}}]}`},
		"postmark":     {`{"RecordType":"Open","MessageID":"m","Recipient":"a@b.c","ReceivedAt":"2024-01-01T00:00:00Z"}`, `{"RecordType":"Open","MessageID":"m","Recipient":"a@b.c","ReceivedAt":"2024-01-01T00:00:01Z"}`},
		"midtrans":     {`{"order_id":"o","transaction_id":"t","transaction_status":"pending","status_code":"201"}`, `{"order_id":"o","transaction_id":"t","transaction_status":"settlement","status_code":"200"}`},
		"paystack":     {`{"event":"transfer.success","data":{"id":1}}`, `{"event":"transfer.reversed","data":{"id":1}}`},
		"payfast":      {"pf_payment_id=1&payment_status=PENDING", "pf_payment_id=1&payment_status=COMPLETE"},
		"lemonsqueezy": {`{"meta":{"event_name":"order_created"},"data":{"type":"orders","id":"1","attributes":{"updated_at":"a"}}}`, `{"meta":{"event_name":"order_refunded"},"data":{"type":"orders","id":"1","attributes":{"updated_at":"a"}}}`},
		"recurly":      {`{"object_type":"account","id":"r","event_type":"created","event_time":"a"}`, `{"object_type":"account","id":"r","event_type":"updated","event_time":"a"}`},
		"meta":         {`{"entry":[{"changes":[{"value":{"statuses":[{"id":"w","status":"sent"}]}}]}]}`, `{"entry":[{"changes":[{"value":{"statuses":[{"id":"w","status":"read"}]}}]}]}`},
		"docusign":     {`{"event":"sent","data":{"envelopeId":"e"},"generatedDateTime":"a"}`, `{"event":"completed","data":{"envelopeId":"e"},"generatedDateTime":"a"}`},
		"wise":         {`{"subscription_id":"s","event_type":"balances#credit","data":{"resource":{"id":1},"amount":5,"post_transaction_balance_amount":5,"occurred_at":"2020-01-01T12:34:56Z"}}`, `{"subscription_id":"s","event_type":"balances#credit","data":{"resource":{"id":1},"amount":5,"post_transaction_balance_amount":10,"occurred_at":"2020-01-01T12:34:56Z"}}`},
		"dropbox-sign": {form("json", `{"event":{"event_type":"template_created","event_time":"1669926463"},"template":{"template_id":"a"}}`), form("json", `{"event":{"event_type":"template_created","event_time":"1669926463"},"template":{"template_id":"b"}}`)},
		"calendly":     {`{"event":"invitee.created","created_at":"a","payload":{"uri":"u"}}`, `{"event":"invitee.canceled","created_at":"a","payload":{"uri":"u"}}`},
	} {
		t.Run("B10 "+name, func(t *testing.T) {
			b := get(t, name)
			first, second := b.key(b.sample(bodies[0])), b.key(b.sample(bodies[1]))
			if first == "" || second == "" || first == second {
				t.Errorf("keys %q and %q", first, second)
			}
		})
	}
	for _, name := range []string{"mollie-classic", "dropbox", "plaid", "supabase-auth", "woocommerce"} {
		t.Run("no key "+name, func(t *testing.T) {
			if p, err := Get(name); err != nil || p.Mode != "observe" || len(p.Key) > 0 {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct{ one, two string }{
		"sendgrid":   {`[{"sg_event_id":"a"},{"sg_event_id":"b"}]`, `[{"sg_event_id":"b"},{"sg_event_id":"a"}]`},
		"gocardless": {`{"events":[{"id":"a"},{"id":"b"}]}`, `{"events":[{"id":"b"},{"id":"a"},{"id":"b"}]}`},
		"line":       {`{"events":[{"webhookEventId":"a"},{"webhookEventId":"b"}]}`, `{"events":[{"webhookEventId":"b"},{"webhookEventId":"a"}]}`},
		"quickbooks": {`[{"source":"s","id":"a"},{"source":"s","id":"b"}]`, `[{"source":"s","id":"b"},{"source":"s","id":"a"}]`},
	} {
		t.Run("B13 "+name, func(t *testing.T) {
			b := get(t, name)
			one, two := strings.Fields(b.key(b.sample(c.one))), strings.Fields(b.key(b.sample(c.two)))
			slices.Sort(one)
			slices.Sort(two)
			if len(one) != 2 || !slices.Equal(one, two) {
				t.Errorf("%v and %v", one, two)
			}
			if key := b.key(b.sample(`[]`)); key != "" {
				t.Errorf("an empty batch has the key %q", key)
			}
		})
	}
}

// TestSvixID: where senders use one pair of names, the other must not slip in
// an unsigned ID.
func TestSvixID(t *testing.T) {
	b := get(t, "svix")
	d := b.sample("")
	d.Header.Set("webhook-id", "msg_2")
	d.Header.Del("svix-id")
	d = b.sign(t, d, now)
	if err := b.verifier.Verify(context.Background(), d); err != nil || b.key(d) != "msg_2" {
		t.Fatalf("%v, key %q", err, b.key(d))
	}
	d.Header.Set("svix-id", "msg_3")
	if b.verifier.Verify(context.Background(), d) == nil {
		t.Error("B08 accepted with an unsigned svix-id")
	}
}

// TestForms: what is not an event as in the sample still has its key, or none.
func TestForms(t *testing.T) {
	const urlencoded = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct{ preset, kind, body, want string }{
		"B14 Slack's command":   {"slack", urlencoded, "command=%2Forder&trigger_id=13345224609.738474920.8088930838d88f008e0", "13345224609.738474920.8088930838d88f008e0"},
		"B14 Slack's button":    {"slack", urlencoded, form("payload", `{"type":"block_actions","trigger_id":"12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3"}`), "12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3"},
		"B14 a multipart event": {"dropbox-sign", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"json\"\r\n\r\n" + `{"event":{"event_type":"t","event_time":"1"},"template":{"template_id":"a"}}` + "\r\n--b--\r\n", "t/1/%-/a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := get(t, c.preset)
			d := b.sample(c.body)
			d.Header.Set("Content-Type", c.kind)
			if key := b.key(d); key != c.want {
				t.Errorf("key %q, want %q", key, c.want)
			}
		})
	}
}

func TestTwilioJSON(t *testing.T) {
	b := get(t, "twilio")
	d := b.sample(`{"a":1}`)
	d.Header.Set("Content-Type", "application/json")
	d.Target = "/twilio?bodySHA256=@bodyhash@"
	done := b.sign(t, d, now)
	if err := b.verifier.Verify(context.Background(), done); err != nil {
		t.Fatal(err)
	}
	done.Body = []byte(`{"a":2}`)
	if b.verifier.Verify(context.Background(), done) == nil {
		t.Error("another body is accepted")
	}
}
