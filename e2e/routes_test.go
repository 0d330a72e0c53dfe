package e2e

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// TestPathForms holds oncegate to what the real router does: whatever it takes
// for the webhook's path is verified and claimed, or refused. Nothing reaches
// the handler past oncegate.
func TestPathForms(t *testing.T) {
	shop := harness.NewShop(t, harness.ShopOptions{Work: time.Millisecond})

	t.Run("behind nginx", func(t *testing.T) {
		gate := binary.Serve(t, harness.Config{Upstream: shop.URL, Routes: harness.StripeRoute})
		tryPathForms(t, shop, 1000, shop.Addr, gate.Addr())
	})
	t.Run("straight to php-fpm", func(t *testing.T) {
		fcgi := shop.FastCGI()
		open := binary.Serve(t, harness.Config{Upstream: fcgi, Routes: route("mode: off")})
		gate := binary.Serve(t, harness.Config{Upstream: fcgi, Routes: harness.StripeRoute})
		tryPathForms(t, shop, 2000, open.Addr(), gate.Addr())
	})
}

// tryPathForms sends each form on the open way, to see whether it leads to the
// handler, and on the guarded way, unsigned and then signed, twice. Events are
// numbered from first.
func tryPathForms(t *testing.T, shop *harness.Shop, first int, open, guarded string) {
	for i, form := range pathForms() {
		t.Run("B48 "+form, func(t *testing.T) {
			_, leadsThere := reachesHandler(open, "POST", form)
			unsigned, reached := reachesHandler(guarded, "POST", form)
			if reached {
				t.Fatalf("an unsigned delivery reaches the handler past oncegate: %v", unsigned)
			}
			if unsigned.Err != nil || unsigned.Status/100 == 3 {
				t.Errorf("unsigned: %v", unsigned)
			}
			if !leadsThere {
				return
			}
			if unsigned.Status/100 != 4 {
				t.Errorf("what the router takes for the webhook is not refused unsigned: %v", unsigned)
			}
			event := harness.NewEvent(first + i)
			lines := []string{"POST " + form + " HTTP/1.1", "Host: shop.example", "Content-Type: application/json",
				"Stripe-Signature: " + event.Delivery().Header.Get("Stripe-Signature")}
			one, two := harness.SendRaw(guarded, lines, event.Body), harness.SendRaw(guarded, lines, event.Body)
			if one.OK() && (one.Result() != "fresh" || two.Result() != "replay" || !bytes.Equal(one.Body, two.Body)) {
				t.Errorf("delivered twice: %v, then %v", one, two)
			}
			runs := 0
			for _, run := range shop.Runs(t) {
				if run.Event == event.ID {
					runs++
				}
			}
			if one.OK() && runs != 1 || !one.OK() && runs != 0 {
				t.Errorf("the handler ran %d times; the answers were %v, then %v", runs, one, two)
			}
		})
	}
}

// TestMethodsOfTheRoute tries the methods, and the ways in which Laravel lets
// a request pretend to another.
func TestMethodsOfTheRoute(t *testing.T) {
	shop := harness.NewShop(t, harness.ShopOptions{Work: time.Millisecond})
	gate := binary.Serve(t, harness.Config{Upstream: shop.URL, Routes: harness.StripeRoute})

	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "PROPFIND", "post", "Post"} {
		for _, header := range []string{"X-Nothing: POST", "X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", "X-Method-Override: POST"} {
			t.Run("B48 "+method+" "+header, func(t *testing.T) {
				a, reached := reachesHandler(gate.Addr(), method, harness.WebhookPath+"?_method=POST", header)
				if reached {
					t.Fatalf("an unsigned request reaches the handler past oncegate: %v", a)
				}
				if slices.Contains([]string{"PUT", "PATCH", "DELETE"}, method) && a.Status != 405 {
					t.Errorf("%v, want 405", a)
				}
			})
		}
	}
}

// TestRawTarget sends targets that a cleaner proxy would change.
func TestRawTarget(t *testing.T) {
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute})

	for _, target := range []string{
		"/a%2Fb/%2e%2e/c", "//x", "/x//y", "/caf%C3%A9", "/a;b=c", "/WEBHOOKS/stripe", "/x/../y", "/x/./y/..", "/?", "/?a=b&&c;d=%zz", "/a?b?c",
		"/a%00b", "/+%20", "/a|b", "/~!$&'()*,;=:@", "/%7Euser", "/index.php/other",
	} {
		t.Run("B48 "+target, func(t *testing.T) {
			before := len(app.Requests())
			a := harness.SendRaw(gate.Addr(), []string{"GET " + target + " HTTP/1.1", "Host: shop.example"}, nil)
			if !a.OK() {
				t.Fatal(a)
			}
			if got := app.Requests()[before].Target; got != target {
				t.Errorf("the app got %q", got)
			}
		})
	}
}

// TestOwnHeaders sends headers that only oncegate may set.
func TestOwnHeaders(t *testing.T) {
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{} })
	gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute})
	event := harness.NewEvent(1)
	forged := []string{"Oncegate-Event: stripe:evt_forged", "Oncegate-Attempt: 99", "oncegate-attempt: 98",
		"Oncegate_Event: stripe:evt_forged", "ONCEGATE_ATTEMPT: 97", "Oncegate-Result: fresh"}

	for name, first := range map[string][]string{
		"a delivery":   {"POST " + harness.WebhookPath + " HTTP/1.1", "Host: shop.example", "Stripe-Signature: " + event.Delivery().Header.Get("Stripe-Signature")},
		"pass-through": {"POST /elsewhere HTTP/1.1", "Host: shop.example"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(app.Requests())
			if a := harness.SendRaw(gate.Addr(), append(first, forged...), event.Body); !a.OK() {
				t.Fatal(a)
			}
			var own []string
			for _, line := range app.Requests()[before].Lines {
				if strings.HasPrefix(strings.ToLower(line), "oncegate") {
					own = append(own, line)
				}
			}
			slices.Sort(own)
			var want []string
			if name == "a delivery" {
				want = []string{"Oncegate-Attempt: 1", "Oncegate-Event: stripe:" + event.ID}
			}
			if !slices.Equal(own, want) {
				t.Errorf("the app saw %q, want %q", own, want)
			}
		})
	}
}
