package proxy_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

const jsonID = "key: [{json: /id}]"

func TestNoKey(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		ids := []string{"", `"id":null,`, `"id":"",`, `"id":"   ",`, `"id":{},`, `"id":[],`, `"id":false,`}
		t.Run("B01 no usable ID is no key", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			for _, id := range ids {
				for _, other := range []string{"1", "2"} {
					r.expect(r.acme("{"+id+`"n":`+other+"}"), 422, "unkeyed")
				}
			}
			r.hits(0)
			if r.records() != 0 {
				t.Error("something was stored")
			}
		})
		t.Run("B01 forwarded where the route says so", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\non_missing_key: forward"))
			n := 0
			for _, id := range ids {
				for _, other := range []string{"1", "2"} {
					n++
					s := r.expect(r.acme("{"+id+`"n":`+other+"}"), 200, "unclaimed")
					if want := fmt.Sprint("answer ", n); s.body != want {
						t.Errorf("%s: got %q, want %q", id, s.body, want)
					}
				}
			}
			if got := r.app.last(t); len(got.header["Oncegate-Event"])+len(got.header["Oncegate-Attempt"]) > 0 {
				t.Error("the app was told of an event")
			}
			if r.records() != 0 {
				t.Error("something was stored")
			}
			if got := r.counts(`oncegate_deliveries_total{result="unclaimed",route="acme"}`); got != fmt.Sprint(n) {
				t.Errorf("%s were counted, want %d", got, n)
			}
		})
		t.Run("B09 nothing else takes a key's place", func(t *testing.T) {
			const byHeader = "key: [{header: X-Id}]"
			r := newRig(t, newApp(t), open(t), acmeRoute(byHeader))
			forwards := newRig(t, newApp(t), open(t), acmeRoute(byHeader+"\non_missing_key: forward"))
			digests := newRig(t, newApp(t), open(t), acmeRoute("key: [{first: [{header: X-Id}, {digest: body}]}]"))
			for _, body := range []string{"", "{}"} {
				for i := range 3 {
					r.expect(r.acme(body), 422, "unkeyed")
					forwards.expect(forwards.acme(body), 200, "unclaimed")
					digests.expect(digests.acme(body), 200, []string{"fresh", "replay", "replay"}[i])
				}
			}
			r.hits(0)
			forwards.hits(6)
			digests.hits(2)
		})
	})
}

func TestKeys(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B03 numbers count by their text", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			ids := []string{
				"9007199254740992", "9007199254740993", "616581622363398142", "616581622363398100",
				"1e21", "1000000000000000000000", "1", "1.0", `"1"`, "-0", "0",
			}
			for _, id := range ids {
				r.expect(r.acme(`{"id":`+id+`}`), 200, "fresh")
			}
			r.hits(len(ids))
			for i, id := range ids {
				if s := r.expect(r.acme(`{"id":`+id+`}`), 200, "replay"); s.body != fmt.Sprint("answer ", i+1) {
					t.Errorf("%s got the answer of another: %s", id, s.body)
				}
			}
		})
		t.Run("B04 the ID is the one that PHP sees, or there is none", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			for _, body := range []string{
				`{"id":"evt_A","id":"evt_B"}`, `{"\u0069d":"evt_A","id":"evt_B"}`, `{"id":"evt_A","\u0069d":"evt_A"}`,
				`{"id":"evt_A"}{}`, "\ufeff" + `{"id":"evt_A"}`, `{"id":"evt_A`, `{'id':"evt_A"}`,
			} {
				r.expect(r.acme(body), 400, "malformed")
			}
			for _, body := range []string{`{"ID":"evt_A"}`, `{"Id":"evt_A"}`, `{"ıd":"evt_A"}`} {
				r.expect(r.acme(body), 422, "unkeyed")
			}
			r.hits(0)
			if r.records() != 0 {
				t.Error("something was stored")
			}
			for i, body := range []string{`{"id":"evt_0","ID":"evt_B"}`, `{"ID":"evt_B","id":"evt_1"}`, `{"x":{"id":"evt_B"},"id":"evt_2"}`} {
				r.expect(r.acme(body), 200, "fresh")
				if got, want := r.app.last(t).header.Get("Oncegate-Event"), fmt.Sprint("acme:evt_", i); got != want {
					t.Errorf("%s: claimed as %s, want %s", body, got, want)
				}
			}
		})
		t.Run("B06 long IDs", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(jsonID))
			random := make([]byte, 48<<10)
			rand.Read(random)
			text := base64.RawURLEncoding.EncodeToString(random)
			for _, id := range []string{text[:2700], strings.Repeat("x", 8000), text[:16<<10]} {
				r.expect(r.acme(`{"id":"`+id+`"}`), 200, "fresh")
				r.expect(r.acme(`{"id":"`+id+`"}`), 200, "replay")
			}
			for _, id := range []string{text[:16<<10+1], text} {
				r.expect(r.acme(`{"id":"`+id+`"}`), 400, "malformed")
			}
			r.hits(3)
		})
		t.Run("B10 what several events share is no key", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), stripeRoute)
			for i := range 4 {
				r.expect(r.stripe(fmt.Sprintf(`{"id":"evt_%d","created":1,"request":{"id":"req_1","idempotency_key":"k"},"data":{"object":{"id":"cus_1"}}}`, i)), 200, "fresh")
			}
			r.hits(4)
		})
		t.Run("B11 what keeps keys apart", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), `
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: `+secret+`}
  connect: {path: /stripe/connect, provider: stripe, secrets: other_`+secret+`}
  github: {path: /github, provider: github, secrets: `+secret+`}
  shopify: {path: /shopify, provider: shopify, secrets: `+secret+`}
`)
			other := startRig(t, r.url, r.store, "namespace: other"+stripeRoute)
			const evt = `{"id":"evt_1"}`
			sends := []struct {
				name string
				send func() answered
			}{
				{"stripe", func() answered { return r.send(r.stripe(evt)) }},
				{"the same, to another endpoint", func() answered {
					return r.send(r.post("/stripe/connect", evt, "Stripe-Signature", stripeSignature("other_"+secret, evt, now())))
				}},
				{"github", func() answered {
					return r.send(r.post("/github", evt, "X-Hub-Signature-256", "sha256="+mac(secret, evt), "X-GitHub-Delivery", "123"))
				}},
				{"shopify", func() answered {
					return r.send(r.post("/shopify", evt, "X-Shopify-Hmac-Sha256", mac64(secret, evt), "X-Shopify-Event-Id", "123", "X-Shopify-Webhook-Id", "123", "X-Shopify-Topic", "orders/create", "X-Shopify-Shop-Domain", "s.myshopify.com"))
				}},
				{"an account", func() answered { return r.send(r.stripe(`{"account":"acct_1","id":"evt_1"}`)) }},
				{"another account", func() answered { return r.send(r.stripe(`{"account":"acct_2","id":"evt_1"}`)) }},
				{"another namespace", func() answered { return other.send(other.stripe(evt)) }},
			}
			for round, result := range []string{"fresh", "replay"} {
				for i, send := range sends {
					if s := send.send(); s.status != 200 || !is(s.result, result) || s.body != fmt.Sprint("answer ", i+1) {
						t.Errorf("%s, round %d: got %d %q %q", send.name, round+1, s.status, s.result, s.body)
					}
				}
			}
			r.hits(len(sends))
		})
	})
}

func TestBatches(t *testing.T) {
	batch := func(ids ...string) string {
		items := make([]map[string]string, len(ids))
		for i, id := range ids {
			items[i] = map[string]string{"id": id}
		}
		b, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B13 a batch is its events", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute("key: [{json: /id}]\neach: \"#\""))
			r.expect(r.acme(batch("e1", "e2")), 200, "fresh")
			for _, again := range [][]string{{"e1", "e2"}, {"e2", "e1"}, {"e2"}, {"e1"}, {"e1", "e1"}} {
				if s := r.expect(r.acme(batch(again...)), 200, "replay"); s.body != "answer 1" {
					t.Errorf("%v: got %q", again, s.body)
				}
			}
			r.expect(r.acme(batch("e1", "e3")), 200, "fresh")
			r.hits(2)
			if body := r.app.last(t).body; body != batch("e1", "e3") {
				t.Errorf("the app got %s", body)
			}
			r.expect(r.acme(batch("e3", "e4", "e5")), 200, "fresh")
			r.expect(r.acme(batch("e5", "e4", "e3", "e2", "e1")), 200, "replay")
			r.expect(r.acme("[]"), 422, "unkeyed")
			r.expect(r.acme(batch("e9", "")), 422, "unkeyed")
			r.hits(3)
			if n := r.records(); n != 5 {
				t.Errorf("%d claims, want one for each of 5 events", n)
			}
		})
		t.Run("B13 an event of a failed batch runs again, one that is done does not", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute("key: [{json: /id}]\neach: \"#\""))
			r.expect(r.acme(batch("e1")), 200, "fresh")
			r.app.say(503, "")
			r.expect(r.acme(batch("e1", "e2")), 503, "failed")
			r.app.answer(nil)
			r.expect(r.acme(batch("e1")), 200, "replay")
			r.expect(r.acme(batch("e2")), 200, "fresh")
		})
	})
	t.Run("B13 ten thousand events", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute("key: [{json: /id}]\neach: \"#\""))
		ids := make([]string, 10_000)
		for i := range ids {
			ids[i] = fmt.Sprint("e", i)
		}
		r.expect(r.acme(batch(ids...)), 200, "fresh")
		r.expect(r.acme(batch(ids...)), 200, "replay")
		r.expect(r.acme(batch(append(ids, "e")...)), 400, "malformed")
		r.hits(1)
	})
}

func TestForms(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B14 a form that holds JSON", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute("key: [{first: [{form: payload, json: /id}, {json: /id}]}]"))
			const form = "application/x-www-form-urlencoded"
			for i, body := range []string{
				"payload=%7B%22id%22%3A%22evt_0%22%7D",
				"a=1&payload=" + url.QueryEscape(`{ "id": "evt_1" }`),
				"payload=%7B%20%22id%22:%22evt_2%22%7D&b=",
			} {
				r.expect(r.acme(body, "Content-Type", form), 200, "fresh")
				got := r.app.last(t)
				if got.body != body || got.header.Get("Content-Type") != form || got.header.Get("Oncegate-Event") != fmt.Sprint("acme:evt_", i) {
					t.Errorf("the app got %q as %q, said to be %q", got.body, got.header.Get("Content-Type"), got.header.Get("Oncegate-Event"))
				}
				r.expect(r.acme(body, "Content-Type", form), 200, "replay")
			}
			r.hits(3)
			for _, body := range []string{"payload={}&payload=%7B%22id%22%3A%22evt_9%22%7D", "payload[]=%7B%22id%22%3A%22evt_9%22%7D&payload=1"} {
				r.expect(r.acme(body, "Content-Type", form), 400, "malformed")
			}
			r.expect(r.acme(`{"id":"evt_json"}`), 200, "fresh")
			r.hits(4)
		})
	})
}
