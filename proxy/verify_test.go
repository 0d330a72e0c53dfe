package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestVerify(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B18 nothing but a signature lets in", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), `
routes:
  github: {path: /github, provider: github, secrets: `+secret+`}
`)
			const body = `{"a":1}`
			good := mac(secret, body)
			for _, signature := range []string{
				"", "sha256=", good, "sha256=" + good[:62], "sha256=" + good + "00", "sha256=" + mac("", body), "sha1=" + good,
				"sha256=" + mac(secret, body+" "), "sha256=" + strings.Repeat("0", 64), "sha256=" + good + ",sha256=" + good, " ",
				"sha256=" + strings.Repeat("g", 64), "sha256=" + strings.Repeat("00", 8<<10),
			} {
				r.expect(r.post("/github", body, "X-GitHub-Delivery", "1", "X-Hub-Signature-256", signature), 401, "unverified")
			}
			r.expect(r.post("/github", body, "X-GitHub-Delivery", "1"), 401, "unverified")
			r.expect(r.post("/github", body, "X-GitHub-Delivery", "1", "X-Hub-Signature", "sha1="+good), 401, "unverified")
			if s := r.send(r.post("/github", body, "X-GitHub-Delivery", "1", "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 2<<20))); s.err == nil && s.status < 400 {
				t.Errorf("a header of 2 MiB: %d", s.status)
			}
			r.hits(0)
			if r.records() != 0 {
				t.Error("something was stored")
			}
			r.expect(r.post("/github", body, "X-GitHub-Delivery", "1", "X-Hub-Signature-256", "sha256="+good), 200, "fresh")
		})
		t.Run("B21 a stranger takes no claim and learns nothing", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), stripeRoute)
			forged := func(body string) {
				r.expect(r.post("/stripe/webhook", body, "Stripe-Signature", stripeSignature("wrong", body, now())), 401, "unverified")
			}
			for range 50 {
				forged(`{"id":"evt_X"}`)
			}
			if r.records() != 0 {
				t.Error("something was stored")
			}
			done := r.expect(r.stripe(`{"id":"evt_X"}`), 200, "fresh")
			before := r.claim("stripe")
			r.expect(r.post("/stripe/webhook", `{"id":"evt_X"}`), 401, "unverified")
			forged(`{"id":"evt_X"}`)
			s := r.send(r.post("/stripe/webhook", `{"id":"evt_X"}`, "Stripe-Signature", stripeSignature("wrong", "x", now())))
			if strings.Contains(s.body, done.body) {
				t.Error("a stranger got the stored answer")
			}
			if after := r.claim("stripe"); after.Version != before.Version {
				t.Error("a stranger changed the claim")
			}
			r.hits(1)
		})
	})
}

func TestSignatures(t *testing.T) {
	t.Run("B19 any signature under any secret", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), `
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: [old_`+secret+`, `+secret+`]}
`)
		n := 0
		send := func(name string, want int, lines func(body, at, good, old string) []string) {
			t.Helper()
			n++
			body, at := fmt.Sprintf(`{"id":"evt_%d"}`, n), fmt.Sprint(now().Unix())
			var header []string
			for _, line := range lines(body, at, mac(secret, at+"."+body), mac("old_"+secret, at+"."+body)) {
				header = append(header, "Stripe-Signature", line)
			}
			if s := r.send(r.post("/stripe/webhook", body, header...)); s.status != want {
				t.Errorf("%s: got %d, want %d", name, s.status, want)
			}
		}
		bad := strings.Repeat("0", 64)
		send("bad, good", 200, func(_, at, good, _ string) []string { return []string{"t=" + at + ",v1=" + bad + ",v1=" + good} })
		send("good, bad", 200, func(_, at, good, _ string) []string { return []string{"t=" + at + ",v1=" + good + ",v1=" + bad} })
		send("the old secret", 200, func(_, at, _, old string) []string { return []string{"t=" + at + ",v1=" + old} })
		send("another scheme beside it", 200, func(_, at, good, _ string) []string { return []string{"t=" + at + ",v0=" + bad + ",v1=" + good} })
		send("another scheme alone", 401, func(_, at, good, _ string) []string { return []string{"t=" + at + ",v0=" + good} })
		send("ten thousand", 401, func(_, at, good, _ string) []string {
			return []string{"t=" + at + strings.Repeat(",v1="+bad, 800) + ",v1=" + good}
		})
		r.hits(4)
	})
	t.Run("B20 the time of signing, to both sides, and nothing but digits", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), stripeRoute)
		const body = `{"id":"evt_1"}`
		for _, at := range []string{
			fmt.Sprint(now().Unix() - 302), fmt.Sprint(now().Unix() + 303), "abc", "1e3", "", "-" + fmt.Sprint(now().Unix()),
			"9223372036854775808", "+" + fmt.Sprint(now().Unix()), " " + fmt.Sprint(now().Unix()), fmt.Sprint(now().Unix()) + ".0",
			fmt.Sprint(now().Unix()) + ",t=" + fmt.Sprint(now().Unix()),
		} {
			r.expect(r.post("/stripe/webhook", body, "Stripe-Signature", "t="+at+",v1="+mac(secret, at+"."+body)), 401, "unverified")
		}
		r.hits(0)
		if r.records() != 0 {
			t.Error("something was stored")
		}
	})
	t.Run("B20 who waits is judged by when it came", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeTimed)
		arrived, release := r.app.hold(t)
		const body = `{"id":"evt_1"}`
		at := fmt.Sprint(now().Unix())
		send := func() <-chan answered {
			return r.later(r.post("/hooks/acme", body, "X-Time", at, "X-Sig", mac(secret, at+"."+body)))
		}
		first := send()
		<-arrived
		second := send()
		r.inHand(2)
		time.Sleep(2100 * time.Millisecond) // until the signature is too old
		release()
		if s := <-first; s.status != 200 || s.result != "fresh" {
			t.Errorf("first: %d %q", s.status, s.result)
		}
		if s := <-second; s.status != 200 || !is(s.result, "waited") || s.body != "held" {
			t.Errorf("second: %d %q %q", s.status, s.result, s.body)
		}
		if s := <-send(); s.status != 401 {
			t.Errorf("one that comes now: %d", s.status)
		}
	})
}

const acmeTimed = `
routes:
  acme:
    path: /hooks/acme
    secrets: ` + secret + `
    verify: {hmac: sha256, header: X-Sig, format: "{hex}", signed: "{header:X-Time}.{body}", time: {header: X-Time, unit: s, tolerance: 1s}}
    key: [{json: /id}]
    wait: 10s
`

func TestUnsignedID(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		github := func(r *rig, body, id string) answered {
			header := []string{"X-Hub-Signature-256", "sha256=" + mac(secret, body)}
			if id != "" {
				header = append(header, "X-GitHub-Delivery", id)
			}
			return r.send(r.post("/github", body, header...))
		}
		check := func(t *testing.T, s answered, status int, result string) {
			t.Helper()
			if s.status != status || !is(s.result, result) {
				t.Errorf("got %d %q %v, want %d %q", s.status, s.result, s.err, status, result)
			}
		}
		t.Run("B08 the ID lies outside the signature", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), "\nroutes:\n  github: {path: /github, provider: github, secrets: "+secret+"}\n")
			check(t, github(r, "{}", "D1"), 200, "fresh")
			check(t, github(r, "{}", "D2"), 200, "fresh")
			check(t, github(r, "{}", ""), 422, "unkeyed")
			check(t, github(r, `{"a":1}`, "D1"), 409, "mismatch")
			r.hits(2)
		})
		t.Run("B08 a guard on the body holds", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), "\nroutes:\n  github: {path: /github, provider: github, secrets: "+secret+", guard: [{digest: body}]}\n")
			check(t, github(r, "{}", "D1"), 200, "fresh")
			check(t, github(r, "{}", "D2"), 200, "replay")
			check(t, github(r, "{}", ""), 422, "unkeyed")
			r.hits(1)
			r.app.say(503, "")
			check(t, github(r, `{"a":1}`, "D3"), 503, "failed")
			r.app.answer(nil)
			check(t, github(r, `{"a":1}`, "D4"), 200, "fresh")
			if got := r.app.last(t).header.Get("Oncegate-Event"); got != "github:D3" {
				t.Errorf("the app was told of %q, want the event that the body stands for", got)
			}
			check(t, github(r, `{"a":1}`, "D3"), 200, "replay")
		})
	})
}

func TestMismatch(t *testing.T) {
	const x, y = `{"id":"evt_1","n":1}`, `{"id":"evt_1","n":2}`
	stages := []struct {
		name string
		// reach brings the event evt_1 with body X to a stage, and returns how to
		// end it.
		reach func(t *testing.T, r *rig) func()
	}{
		{"while it runs", func(t *testing.T, r *rig) func() {
			arrived, release := r.app.hold(t)
			first := r.later(r.acme(x))
			<-arrived
			return func() { release(); <-first }
		}},
		{"when it is done", func(t *testing.T, r *rig) func() {
			r.app.say(200, "held")
			r.expect(r.acme(x), 200, "fresh")
			return func() {}
		}},
		{"after a takeover", func(t *testing.T, r *rig) func() {
			r.app.say(500, "")
			r.expect(r.acme(x), 500, "failed")
			r.app.say(200, "held")
			r.expect(r.acme(x), 200, "fresh")
			return func() {}
		}},
	}
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		for _, stage := range stages {
			t.Run("B16 another body is replayed, and seen, "+stage.name, func(t *testing.T) {
				r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\non_mismatch: replay"))
				end := stage.reach(t, r)
				hits := r.app.count()
				second := r.later(r.acme(y))
				if stage.name == "while it runs" {
					r.inHand(2)
				}
				end()
				if s := <-second; s.status != 200 || s.body != "held" || s.result != "replay" && !is(s.result, "waited") {
					t.Errorf("got %d %q %q", s.status, s.result, s.body)
				}
				r.hits(hits)
				if n := r.counts(`oncegate_differing_payloads_total{route="acme"}`); n != "1" {
					t.Errorf("%s differing payloads were counted, want 1", n)
				}
			})
			t.Run("B16 another body is refused "+stage.name, func(t *testing.T) {
				r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\non_mismatch: refuse"))
				end := stage.reach(t, r)
				hits := r.app.count()
				r.expect(r.acme(y), 409, "mismatch")
				for _, digest := range []string{sha(x), sha(y)} {
					if !strings.Contains(r.log.String(), digest) {
						t.Errorf("the log lacks the digest %s", digest)
					}
				}
				end()
				r.hits(hits)
			})
			t.Run("B16 another body is another event "+stage.name, func(t *testing.T) {
				r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\non_mismatch: run"))
				end := stage.reach(t, r)
				hits := r.app.count()
				second := r.later(r.acme(y))
				eventually(t, func() bool { return r.app.count() == hits+1 })
				end()
				if s := <-second; s.status != 200 || s.result != "fresh" {
					t.Errorf("got %d %q", s.status, s.result)
				}
				if got, want := r.app.last(t).header.Get("Oncegate-Event"), "acme:evt_1/sha256-"+sha(y); got != want {
					t.Errorf("the app was told %q, want %q", got, want)
				}
				r.expect(r.acme(x), 200, "replay")
				r.expect(r.acme(y), 200, "replay")
			})
		}
		t.Run("the same key to another target, where clients make the keys", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), "\nroutes:\n  orders: {path: /api/orders, provider: idempotency-key, caller: {header: Authorization}}\n")
			post := func(query, caller, body string) answered {
				return r.send(r.post("/api/orders"+query, body, "Idempotency-Key", `"k"`, "Authorization", caller))
			}
			check := func(s answered, status int, result string) {
				t.Helper()
				if s.status != status || !is(s.result, result) {
					t.Errorf("got %d %q, want %d %q", s.status, s.result, status, result)
				}
			}
			check(post("", "Bearer a", "{}"), 200, "fresh")
			check(post("", "Bearer a", "{}"), 200, "replay")
			check(post("", "Bearer a", `{"x":1}`), 422, "mismatch")
			check(post("?x", "Bearer a", "{}"), 422, "mismatch")
			check(post("", "Bearer b", "{}"), 200, "fresh")
			if strings.Contains(r.log.String(), "Bearer") {
				t.Error("the caller's credential is in the log")
			}
			r.hits(2)
		})
	})
}
