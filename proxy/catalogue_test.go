package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/provider"
	"oncegate/verify"
)

// catalogueRoutes are two routes of each preset that is enforced, each with claims
// of its own, and with secrets or test keys that suit them.
func catalogueRoutes(t *testing.T) (text string, names []string) {
	t.Helper()
	presets, err := provider.All()
	if err != nil {
		t.Fatal(err)
	}
	text = "public_url: https://shop.example\nroutes:\n"
	for _, p := range presets {
		if p.Mode != "enforce" {
			continue
		}
		names = append(names, p.Name)
		rest := fmt.Sprintf("    provider: %s\n", p.Name)
		if secret, err := verify.Generate(p.Verify); err == nil {
			rest += fmt.Sprintf("    secrets: %q\n", secret)
		} else if key, err := verify.NewTestKey(p.Verify); err == nil {
			rest += fmt.Sprintf("    test_key: %q\n", key)
		}
		if p.CallerRequired {
			rest += "    caller: {header: Authorization}\n"
		}
		if len(p.Params) > 0 {
			rest += "    params:\n"
		}
		for name, param := range p.Params {
			rest += fmt.Sprintf("      %s: %q\n", name, param.Example)
		}
		for _, route := range []string{p.Name, p.Name + "-failing"} {
			text += fmt.Sprintf("  %s:\n    path: /%s\n%s", route, route, rest)
		}
	}
	return text, names
}

// catalogueDelivery is the preset's sample with this body, signed for the route.
func catalogueDelivery(t *testing.T, r *rig, route *config.Route, body string) *http.Request {
	t.Helper()
	d := route.Preset.Delivery(route.Path)
	if d.Target = route.Path; strings.Contains(route.Preset.Sample.Target, "?") {
		_, query, _ := strings.Cut(route.Preset.Sample.Target, "?")
		d.Target += "?" + query
	}
	if body != "" {
		d.Body = []byte(body)
	}
	if route.Preset.CallerRequired {
		d.Header.Set("Authorization", "Bearer a")
	}
	if route.Verifier != nil {
		var err error
		if d, err = route.Verifier.Complete(d, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return requestOf(t, r, d)
}

func requestOf(t *testing.T, r *rig, d *delivery.Delivery) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), d.Method, r.front.URL+d.Target, strings.NewReader(string(d.Body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = d.Header.Clone()
	return req
}

// TestCatalogue: an event of each provider's reaches the app once, however often it
// is delivered, also as the provider changes it between two tries; and where the app
// fails at first, the provider's next try is not refused for having another body.
func TestCatalogue(t *testing.T) {
	text, names := catalogueRoutes(t)
	a := newApp(t)
	r := newRig(t, a, newMem(), text)
	routes := map[string]*config.Route{}
	for _, route := range r.load("namespace: shop\n" + text).Routes {
		routes[route.Name] = route
	}
	if len(names) < 60 {
		t.Errorf("%d presets", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r.t = t
			a.take()
			a.say(200, "ok")
			route := routes[name]
			retry := route.Preset.Sample.Retry
			r.expect(catalogueDelivery(t, r, route, ""), 200, "fresh")
			r.expect(catalogueDelivery(t, r, route, ""), 200, "replay")
			r.expect(catalogueDelivery(t, r, route, retry), 200, "replay")
			r.hits(1)

			route = routes[name+"-failing"]
			a.say(500, "no")
			r.expect(catalogueDelivery(t, r, route, ""), 500, "failed")
			a.say(200, "ok")
			r.expect(catalogueDelivery(t, r, route, retry), 200, "fresh")
			r.expect(catalogueDelivery(t, r, route, ""), 200, "replay")
			r.hits(3)
		})
	}
}
