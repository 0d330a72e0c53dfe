package proxy_test

import (
	"testing"

	"oncegate/lock/memlock"
)

func TestWay(t *testing.T) {
	t.Run("fresh, then replay", func(t *testing.T) {
		r := newRig(t, newApp(t), memlock.New(), stripeRoute)
		first := r.expect(r.signed("/stripe/webhook", `{"id":"evt_1"}`), 200, "fresh")
		again := r.expect(r.signed("/stripe/webhook", `{"id":"evt_1"}`), 200, "replay")
		if first.body != again.body || r.app.count() != 1 {
			t.Errorf("%q, then %q, after %d hits", first.body, again.body, r.app.count())
		}
		if again.header.Get("Idempotent-Replayed") != "true" {
			t.Error("a replay must say so")
		}
		hit := r.app.last()
		if hit.header.Get("Oncegate-Event") != "stripe:evt_1" || hit.header.Get("Oncegate-Attempt") != "1" {
			t.Errorf("the app was told %q, %q", hit.header.Get("Oncegate-Event"), hit.header.Get("Oncegate-Attempt"))
		}
		if hit.header.Get("User-Agent") != "Go-http-client/1.1" || hit.header["Accept-Encoding"][0] != "gzip" {
			t.Error("the sender's headers were touched")
		}
	})
}
