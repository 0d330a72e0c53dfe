package verify

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestShared(t *testing.T) {
	bearer := Spec{Token: true, Header: []string{"Authorization"}, Format: "Bearer {token}"}
	query := Spec{Token: true, Query: "key"}
	for _, c := range []struct {
		name      string
		spec      Spec
		target    string
		header    string
		want      string
		plausible bool
	}{
		{"token", bearer, "/", "Bearer s3cret", "ok", true},
		{"second token", bearer, "/", "Bearer other", "ok", true},
		{"wrong token", bearer, "/", "Bearer s3cres", "mismatch", false},
		{"no prefix", bearer, "/", "s3cret", "malformed", false},
		{"beside what must be absent", Spec{Token: true, Header: []string{"Authorization"}, Absent: []string{"Authorization"}}, "/", "s3cret", "malformed", false},
		{"empty token", bearer, "/", "Bearer ", "mismatch", false},
		{"nothing", bearer, "/", "", "missing", false},
		{"basic", Spec{Basic: true, Secrets: []string{"user:pass:word"}}, "/", "Basic dXNlcjpwYXNzOndvcmQ=", "ok", true},
		{"basic wrong", Spec{Basic: true, Secrets: []string{"user:password"}}, "/", "Basic dXNlcjpwYXNzOndvcmQ=", "mismatch", false},
		{"basic without pair", Spec{Basic: true, Secrets: []string{"user:password"}}, "/", "Basic dXNlcg==", "malformed", false},
		{"query", query, "/?key=s3cret", "", "ok", true},
		{"query twice", query, "/?key=s3cret&key=s3cret", "", "malformed", true},
		{"query absent", query, "/", "", "missing", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := mustCompile(t, c.spec, Options{Secrets: secrets("s3cret", "other")})
			d := post("{}", "Authorization", c.header)
			d.Target = c.target
			if got := outcome(t, v.Verify(context.Background(), d)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := v.Plausible(d.Header); (got == nil) != c.plausible {
				t.Errorf("Plausible: %v", got)
			}
			h, err := v.Sign(d, arrived)
			if err != nil || c.spec.Query == "" && h.Get("Authorization") == "" {
				t.Errorf("Sign: %v, %v", h, err)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	v, err := Compile([]Spec{{IPs: []string{"192.0.2.0/24", "2001:db8::1"}}, hub()}, Options{Secrets: secrets("k")})
	if err != nil {
		t.Fatal(err)
	}
	for remote, want := range map[string]string{"192.0.2.7": "ok", "::ffff:192.0.2.7": "ok", "2001:db8::1": "ok", "192.0.3.1": "mismatch", "": "mismatch"} {
		d := post("{}", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac("k", "{}")))
		if remote != "" {
			d.Remote = netip.MustParseAddr(remote)
		}
		if got := outcome(t, v.Verify(context.Background(), d)); got != want {
			t.Errorf("%q: %s, want %s", remote, got, want)
		}
	}
	t.Run("both must hold", func(t *testing.T) {
		d := post("{}", "X-Hub-Signature-256", "sha256="+strings.Repeat("00", 32))
		d.Remote = netip.MustParseAddr("192.0.2.7")
		if got := outcome(t, v.Verify(context.Background(), d)); got != "mismatch" {
			t.Error(got)
		}
	})
}

func TestForward(t *testing.T) {
	status := 204
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "{}" || r.Header.Get("X-Sig") != "abc" || r.Header.Get("Oncegate-Target") != "/hook" || r.Header.Get("Oncegate-Method") != "POST" {
			t.Errorf("asked with %q, %v, %v", body, r.Header, err)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer server.Close()
	v := mustCompile(t, Spec{HTTP: server.URL + "/verify"}, Options{})
	for code, want := range map[int]string{200: "ok", 204: "ok", 401: "mismatch", 403: "mismatch", 302: "unavailable", 500: "unavailable"} {
		status = code
		if got := outcome(t, v.Verify(context.Background(), post("{}", "X-Sig", "abc"))); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
	server.Close()
	if got := outcome(t, v.Verify(context.Background(), post("{}", "X-Sig", "abc"))); got != "unavailable" {
		t.Errorf("down: %s", got)
	}
}

func TestAbsent(t *testing.T) {
	second := hub()
	second.Absent = []string{"svix-id"}
	v := mustCompile(t, Spec{Any: []Spec{standard(), second}}, Options{Secrets: secrets("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")})
	sig := "sha256=" + hex.EncodeToString(mac("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "{}"))
	if err := v.Verify(context.Background(), post("{}", "X-Hub-Signature-256", sig)); err != nil {
		t.Error(err)
	}
	if v.Verify(context.Background(), post("{}", "X-Hub-Signature-256", sig, "svix-id", "forged")) == nil {
		t.Error("B08 an unsigned ID beside another alternative's signature was let through")
	}
}

func TestFields(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		name, body, want string
		f                Fields
	}{
		{"received", "b=2&a=1+x&signature=s", "b=2&a=1+x", Fields{Pair: "=", Join: "&", Until: "signature", Encode: "form"}},
		{"php encoding", "a=~%2F%20", "a=%7E%2F+", Fields{Pair: "=", Join: "&", Encode: "form"}},
		{"sorted", "b=2&a=1&A=0", "A0a1b2", Fields{Order: "sorted"}},
		{"sorted, twice", "a=2&a=1&a=2", "a1a2", Fields{Order: "sorted"}},
		{"except", "a=1&signature=s&b=", "a1b", Fields{Order: "sorted", Except: []string{"signature"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &request{Delivery: post(c.body, "Content-Type", form)}
			if got, err := c.f.text(r); got != c.want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	t.Run("fields behind the signature", func(t *testing.T) {
		r := &request{Delivery: post("a=1&signature=s&amount=0", "Content-Type", form)}
		if _, err := (&Fields{Until: "signature"}).text(r); outcome(t, err) != "malformed" {
			t.Error(err)
		}
	})
	t.Run("no form", func(t *testing.T) {
		r := &request{Delivery: post("a=1", "Content-Type", "text/plain")}
		if _, err := (&Fields{}).text(r); outcome(t, err) != "malformed" {
			t.Error(err)
		}
	})
}

func TestURL(t *testing.T) {
	for _, c := range []struct {
		public, port, decode, target string
		want                         []string
	}{
		{"https://shop.example", "", "", "/a?b=%2F", []string{"https://shop.example/a?b=%2F"}},
		{"https://shop.example/api/", "", "", "/a", []string{"https://shop.example/api/a"}},
		{"https://shop.example", "either", "", "/a", []string{"https://shop.example/a", "https://shop.example:443/a"}},
		{"https://shop.example:8443", "either", "", "/a", []string{"https://shop.example:8443/a", "https://shop.example/a"}},
		{"https://shop.example", "", "%3A %2F", "/a%3ab%2Fc%20", []string{"https://shop.example/a:b/c%20"}},
	} {
		u, err := compileURL(c.public, c.port, c.decode)
		if err != nil {
			t.Fatal(err)
		}
		got, err := u.of(c.target)
		if err != nil || strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	for _, bad := range []string{"", "shop.example", "https://u:p@shop.example", "https://shop.example?x=1", "ftp://x"} {
		if _, err := compileURL(bad, "", ""); err == nil {
			t.Errorf("%q compiled", bad)
		}
	}
}

func TestItems(t *testing.T) {
	s := Spec{HMAC: "sha256", Each: "/items", JSON: "/sig", Format: "{base64}", Signed: "{json:/id}:{json:/amount?}"}
	v := mustCompile(t, s, Options{Secrets: secrets("k")})
	d, err := v.Complete(post(`{"items":[{"id":"a","amount":1.50,"sig":"@signature@"},{"id":"b","sig":"@signature@"}]}`), arrived)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{`"b"`: `"c"`, "1.50": "1.5", `{"items":[`: `{"items":[],"x":[`} {
		bad := post(strings.Replace(string(d.Body), from, to, 1))
		if v.Verify(context.Background(), bad) == nil {
			t.Errorf("%s for %s: accepted", to, from)
		}
	}
	t.Run("B13 10001 items", func(t *testing.T) {
		body := `{"items":[` + strings.Repeat(`{"sig":"x"},`, maxItems) + `{"sig":"x"}]}`
		if got := outcome(t, v.Verify(context.Background(), post(body))); got != "malformed" {
			t.Error(got)
		}
	})
}

func TestExplain(t *testing.T) {
	v := mustCompile(t, stripe(), Options{Secrets: secrets("old", "new")})
	d, err := mustCompile(t, stripe(), Options{Secrets: secrets("other")}).Complete(post(`{"id":1}`), arrived)
	if err != nil {
		t.Fatal(err)
	}
	trace := v.Explain(context.Background(), d)
	if len(trace.Checks) != 1 || outcome(t, trace.Err) != "mismatch" {
		t.Fatalf("%+v", trace)
	}
	check := trace.Checks[0]
	if string(check.Signed) != check.Time+`.{"id":1}` || len(check.Given) != 1 || len(check.Computed) != 2 || len(check.Computed[0]) != 8 || check.Fits {
		t.Errorf("%+v", check)
	}
	t.Run("no secret in it", func(t *testing.T) {
		plain := Spec{Hash: "sha512", Header: []string{"H"}, Signed: "{body}{secret}"}
		v := mustCompile(t, plain, Options{Secrets: secrets("s3cret")})
		d, err := v.Complete(post("x"), arrived)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Explain(context.Background(), d); string(got.Checks[0].Signed) != "x***" || !got.Checks[0].Fits || got.Err != nil {
			t.Errorf("%+v", got)
		}
	})
}
