package verify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
)

var arrived = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func secrets(texts ...string) Secrets { return func() ([]string, error) { return texts, nil } }

func mustCompile(t *testing.T, s Spec, o Options) *Verifier {
	t.Helper()
	v, err := Compile([]Spec{s}, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func post(body string, header ...string) *delivery.Delivery {
	d := &delivery.Delivery{Method: "POST", Target: "/hook", Host: "shop.example", Header: http.Header{}, Body: []byte(body), Arrived: arrived}
	for i := 0; i+1 < len(header); i += 2 {
		d.Header.Add(header[i], header[i+1])
	}
	return d
}

func mac(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// outcome is the kind of an error, or "ok".
func outcome(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v is a %T", err, err)
	}
	return e.Kind.String()
}

func stripe() Spec {
	return Spec{HMAC: "sha256", Header: []string{"Stripe-Signature"}, List: ",", Format: "t={time},v1={hex}", Signed: "{time}.{body}", Time: &Time{}}
}

func standard() Spec {
	return Spec{HMAC: "sha256", Header: []string{"webhook-signature"}, List: " ", Format: "v1,{base64}", Encoding: "whsec",
		Signed: "{header:webhook-id}.{time}.{body}", Time: &Time{Header: "webhook-timestamp"}}
}

func hub() Spec {
	return Spec{HMAC: "sha256", Header: []string{"X-Hub-Signature-256"}, Format: "sha256={hex}"}
}

func TestTimedList(t *testing.T) {
	const body = `{"id":"evt_1"}`
	now := arrived.Unix()
	sig := func(key string, at any) string { return hex.EncodeToString(mac(key, fmt.Sprint(at)+"."+body)) }
	v := mustCompile(t, stripe(), Options{Secrets: secrets("old", "new")})
	good, bad := sig("new", now), strings.Repeat("00", 32)
	for _, c := range []struct{ name, header, want string }{
		{"plain", fmt.Sprintf("t=%d,v1=%s", now, good), "ok"},
		{"B19 bad then good", fmt.Sprintf("t=%d,v1=%s,v1=%s", now, bad, good), "ok"},
		{"B19 good then bad", fmt.Sprintf("t=%d,v1=%s,v1=%s", now, good, bad), "ok"},
		{"B19 old secret", fmt.Sprintf("t=%d,v1=%s", now, sig("old", now)), "ok"},
		{"B19 only v0", fmt.Sprintf("t=%d,v0=%s", now, good), "malformed"},
		{"B19 undecodable ignored", fmt.Sprintf("t=%d,v1=zz,v1=%s", now, good), "ok"},
		{"B19 64 signatures", fmt.Sprintf("t=%d%s,v1=%s", now, strings.Repeat(",v1=00", 62), good), "ok"},
		{"B19 65 signatures", fmt.Sprintf("t=%d%s,v1=%s", now, strings.Repeat(",v1=00", 63), good), "malformed"},
		{"B19 10000 signatures", fmt.Sprintf("t=%d%s,v1=%s", now, strings.Repeat(",v1="+bad, 10000), good), "malformed"},
		{"blank after comma", fmt.Sprintf("t=%d, v1=%s", now, good), "ok"},
		{"upper case hex", fmt.Sprintf("t=%d,v1=%s", now, strings.ToUpper(good)), "ok"},
		{"unknown items ignored", fmt.Sprintf("t=%d,x,v9=1,v1=%s,=", now, good), "ok"},
		{"wrong secret", fmt.Sprintf("t=%d,v1=%s", now, sig("other", now)), "mismatch"},
		{"B18 truncated digest", fmt.Sprintf("t=%d,v1=%s", now, good[:62]), "malformed"},
		{"B18 digest of the empty key", fmt.Sprintf("t=%d,v1=%s", now, sig("", now)), "mismatch"},
		{"B20 300 s before", fmt.Sprintf("t=%d,v1=%s", now-300, sig("new", now-300)), "ok"},
		{"B20 301 s before", fmt.Sprintf("t=%d,v1=%s", now-301, sig("new", now-301)), "stale"},
		{"B20 300 s after", fmt.Sprintf("t=%d,v1=%s", now+300, sig("new", now+300)), "ok"},
		{"B20 301 s after", fmt.Sprintf("t=%d,v1=%s", now+301, sig("new", now+301)), "stale"},
		{"B20 letters", "t=abc,v1=" + sig("new", "abc"), "malformed"},
		{"B20 exponent", "t=1e3,v1=" + sig("new", "1e3"), "malformed"},
		{"B20 empty", "t=,v1=" + sig("new", ""), "malformed"},
		{"B20 none", "v1=" + good, "malformed"},
		{"B20 two times", fmt.Sprintf("t=%d,t=%d,v1=%s", now, now, good), "malformed"},
		{"B20 negative", fmt.Sprintf("t=-%d,v1=%s", now, sig("new", -now)), "malformed"},
		{"B20 plus sign", fmt.Sprintf("t=+%d,v1=%s", now, sig("new", fmt.Sprintf("+%d", now))), "malformed"},
		{"B20 2^63", "t=9223372036854775808,v1=" + sig("new", "9223372036854775808"), "malformed"},
		{"B20 leading zero", fmt.Sprintf("t=0%d,v1=%s", now, sig("new", fmt.Sprintf("0%d", now))), "malformed"},
		{"B18 empty header", "", "missing"},
		{"B18 2 MiB header", "t=1,v1=" + strings.Repeat("0", 2<<20), "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := post(body, "Stripe-Signature", c.header)
			if got := outcome(t, v.Verify(context.Background(), d)); got != c.want {
				t.Errorf("Verify: %s, want %s", got, c.want)
			}
			// What the headers alone give away is refused before the body.
			want := c.want
			if want == "mismatch" || want == "stale" {
				want = "ok"
			}
			if got := outcome(t, v.Plausible(d.Header)); got != want {
				t.Errorf("Plausible: %s, want %s", got, want)
			}
		})
	}
	t.Run("B18 header missing", func(t *testing.T) {
		if got := outcome(t, v.Verify(context.Background(), post(body))); got != "missing" {
			t.Errorf("%s, want missing", got)
		}
	})
	t.Run("B19 two header lines", func(t *testing.T) {
		d := post(body, "Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", now, bad), "Stripe-Signature", "v1="+good)
		if err := v.Verify(context.Background(), d); err != nil {
			t.Error(err)
		}
	})
	t.Run("B20 judged at arrival", func(t *testing.T) {
		// However late Verify is called, Arrived decides.
		d := post(body, "Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", now-299, sig("new", now-299)))
		if err := v.Verify(context.Background(), d); err != nil {
			t.Error(err)
		}
	})
}

func TestSpaceList(t *testing.T) {
	const body, id = `{"id":"evt_1"}`, "msg_1"
	key := []byte("0123456789abcdef01234567")
	sum := mac(string(key), fmt.Sprintf("%s.%d.%s", id, arrived.Unix(), body))
	good := "v1," + base64.StdEncoding.EncodeToString(sum)
	bad := "v1," + base64.StdEncoding.EncodeToString(make([]byte, 32))
	v := mustCompile(t, standard(), Options{Secrets: secrets("whsec_" + base64.StdEncoding.EncodeToString(key))})
	for _, c := range []struct{ name, header, want string }{
		{"plain", good, "ok"},
		{"B19 bad then good", bad + " " + good, "ok"},
		{"B19 other version first", "v1a,AAAA " + good, "ok"},
		{"comma and blank between", good + ", " + bad, "ok"},
		{"B19 prefix is compared too", strings.Replace(good, "v1,", "v2,", 1), "malformed"},
		{"not canonical base64", strings.TrimRight(good, "="), "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := post(body, "webhook-id", id, "webhook-timestamp", fmt.Sprint(arrived.Unix()), "webhook-signature", c.header)
			if got := outcome(t, v.Verify(context.Background(), d)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	t.Run("two IDs", func(t *testing.T) {
		d := post(body, "webhook-id", id, "webhook-id", "msg_2", "webhook-timestamp", fmt.Sprint(arrived.Unix()), "webhook-signature", good)
		if got := outcome(t, v.Verify(context.Background(), d)); got != "malformed" {
			t.Errorf("%s, want malformed", got)
		}
	})
	t.Run("no ID", func(t *testing.T) {
		d := post(body, "webhook-timestamp", fmt.Sprint(arrived.Unix()), "webhook-signature", good)
		if got := outcome(t, v.Verify(context.Background(), d)); got != "missing" {
			t.Errorf("%s, want missing", got)
		}
	})
}

func TestRawBytes(t *testing.T) {
	v := mustCompile(t, hub(), Options{Secrets: secrets("It's a Secret to Everybody")})
	t.Run("published vector", func(t *testing.T) {
		// From GitHub's page on validating deliveries.
		d := post("Hello, World!", "X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
		if err := v.Verify(context.Background(), d); err != nil {
			t.Error(err)
		}
	})
	for name, body := range map[string]string{
		"newline at the end": "{}\n", "CRLF": "{\r\n}", "byte order mark": "\xef\xbb\xbf{}", "tabs": "{\t}",
		"escapes": `{"a":"\/\u00e9"}`, "latin-1": "{\"a\":\"\xe9\"}", "empty": "",
	} {
		t.Run("B17 "+name, func(t *testing.T) {
			d := post(body, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac("It's a Secret to Everybody", body)), "Content-Type", "application/json; charset=iso-8859-1")
			if err := v.Verify(context.Background(), d); err != nil {
				t.Error(err)
			}
		})
	}
	for _, header := range []string{"sha256=", "sha1=757107ea", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"} {
		t.Run("B18 "+header, func(t *testing.T) {
			if got := outcome(t, v.Plausible(http.Header{"X-Hub-Signature-256": {header}})); got != "malformed" {
				t.Errorf("%s, want malformed", got)
			}
		})
	}
}

func TestBadSecrets(t *testing.T) {
	whsec := standard()
	for name, c := range map[string]struct {
		spec Spec
		raw  []string
	}{
		"none": {hub(), nil}, "empty": {hub(), []string{""}}, "blank": {hub(), []string{"   "}},
		"newline": {hub(), []string{"\n"}}, "second empty": {hub(), []string{"good", ""}},
		"undecodable": {whsec, []string{"whsec_!!!!"}}, "prefix alone": {whsec, []string{"whsec_"}},
		"alternatives": {Spec{Any: []Spec{hub(), whsec}}, []string{"good", " "}},
		"no hex":       {Spec{HMAC: "sha256", Header: []string{"H"}, Encoding: "hex"}, []string{"s3cret"}},
		"basic":        {Spec{Basic: true}, []string{"s3cret"}},
		"basic blank":  {Spec{Basic: true}, []string{" : "}},
		"no key":       {Spec{Ed25519: true, Header: []string{"H"}, Encoding: "hex"}, []string{"s3cret"}},
	} {
		t.Run("B18 "+name, func(t *testing.T) {
			v, err := Compile([]Spec{c.spec}, Options{Secrets: secrets(c.raw...)})
			if err == nil || v != nil {
				t.Fatalf("compiled: %v", err)
			}
			for _, raw := range c.raw {
				if text := strings.TrimSpace(raw); len(text) > 5 && strings.Contains(err.Error(), text) {
					t.Errorf("the error holds the secret: %v", err)
				}
			}
		})
	}
	// Points of small order, whose signatures anybody can make: every spelling.
	for _, y := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	} {
		for _, sign := range []byte{0, 0x80} {
			raw, err := hex.DecodeString(y)
			if err != nil {
				t.Fatal(err)
			}
			raw[31] |= sign
			text := hex.EncodeToString(raw)
			t.Run("B18 ed25519 "+text, func(t *testing.T) {
				spec := Spec{Ed25519: true, Header: []string{"H"}, Encoding: "hex"}
				if v, err := Compile([]Spec{spec}, Options{Secrets: secrets(text)}); err == nil || v != nil {
					t.Fatalf("compiled: %v", err)
				}
			})
		}
	}
	t.Run("nil refuses", func(t *testing.T) {
		v, err := Compile([]Spec{{None: true}}, Options{})
		if v != nil || err != nil {
			t.Fatal(v, err)
		}
		if v.Verify(context.Background(), post("{}")) == nil || v.Plausible(http.Header{}) == nil {
			t.Error("a nil Verifier accepts")
		}
	})
	t.Run("secret goes bad later", func(t *testing.T) {
		raw := []string{"good"}
		v := mustCompile(t, hub(), Options{Secrets: func() ([]string, error) { return raw, nil }})
		raw = []string{""}
		d := post("{}", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac("", "{}")))
		if got := outcome(t, v.Verify(context.Background(), d)); got != "unavailable" {
			t.Errorf("%s, want unavailable", got)
		}
	})
}

func TestSpecFaults(t *testing.T) {
	for name, s := range map[string]Spec{
		"nothing":             {},
		"two schemes":         {HMAC: "sha256", Token: true, Header: []string{"H"}},
		"unknown hash":        {HMAC: "crc", Header: []string{"H"}},
		"no place":            {HMAC: "sha256"},
		"two places":          {HMAC: "sha256", Header: []string{"H"}, Form: "f"},
		"no signature":        {HMAC: "sha256", Header: []string{"H"}, Format: "v1="},
		"unknown placeholder": {HMAC: "sha256", Header: []string{"H"}, Signed: "{bdy}"},
		"time from nowhere":   {HMAC: "sha256", Header: []string{"H"}, Signed: "{time}.{body}"},
		"url unknown":         {HMAC: "sha256", Header: []string{"H"}, Signed: "{url}"},
		"param unset":         {HMAC: "sha256", Header: []string{"H"}, Signed: "{param:x}"},
		"secret in hmac":      {HMAC: "sha256", Header: []string{"H"}, Signed: "{secret}"},
		"hash without secret": {Hash: "md5", Header: []string{"H"}, Signed: "{body}"},
		"addresses alone":     {IPs: []string{"192.0.2.1"}},
		"open bracket":        {HMAC: "sha256", Header: []string{"H"}, Signed: "[{body}"},
		"claims without jwt":  {HMAC: "sha256", Header: []string{"H"}, Claims: &Claims{Issuer: []string{"x"}}},
		"signed with token":   {Token: true, Header: []string{"H"}, Signed: "{body}"},
		"fields unused":       {HMAC: "sha256", Header: []string{"H"}, Fields: &Fields{}},
		"port without url":    {HMAC: "sha256", Header: []string{"H"}, Port: "either"},
		"header with any":     {Any: []Spec{hub()}, Header: []string{"H"}},
		"none in a list":      {Any: []Spec{{None: true}, hub()}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Compile([]Spec{s}, Options{Secrets: secrets("s3cret")})
			if _, ok := errors.AsType[Faults](err); !ok || v != nil {
				t.Errorf("Compile: %v, %v", v, err)
			}
		})
	}
	t.Run("all faults at once", func(t *testing.T) {
		_, err := Compile([]Spec{{HMAC: "crc", Header: []string{"H"}}, {None: true}, {}}, Options{Secrets: secrets("s")})
		if faults, _ := errors.AsType[Faults](err); len(faults) != 3 {
			t.Errorf("%d faults: %v", len(faults), err)
		}
	})
}

func TestSignThenVerify(t *testing.T) {
	for name, s := range map[string]Spec{"stripe": stripe(), "standard": standard(), "hub": hub(), "any": {Any: []Spec{standard(), stripe()}}} {
		t.Run(name, func(t *testing.T) {
			v := mustCompile(t, s, Options{Secrets: secrets("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")})
			d := post(`{"id":1}`, "webhook-id", "msg_1")
			later := arrived.Add(24 * time.Hour)
			h, err := v.Sign(d, later)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Header) != 1 {
				t.Error("the delivery was changed")
			}
			for name, values := range h {
				d.Header[name] = values
			}
			d.Arrived = later
			if err := v.Verify(context.Background(), d); err != nil {
				t.Error(err)
			}
			if name != "hub" && !v.Judges() {
				t.Error("a time is judged")
			}
		})
	}
}

// A sample holds the headers of every alternative; the one that signs it leaves out
// those that may not stand beside it.
func TestCompleteLeavesOut(t *testing.T) {
	token := Spec{Token: true, Header: []string{"X-Token"}, Absent: []string{"webhook-id"}}
	hmac := Spec{HMAC: "sha1", Header: []string{"X-Hub-Signature"}, Absent: []string{"webhook-id"}}
	for name, s := range map[string]Spec{"token": token, "signature": hmac} {
		v := mustCompile(t, Spec{Any: []Spec{standard(), s}}, Options{Secrets: secrets("no base64!")})
		d, err := v.Complete(post("{}", "webhook-id", "msg_1"), arrived)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(context.Background(), d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if h, err := v.Sign(post("{}", "webhook-id", "msg_1"), arrived); err != nil || len(h) != 1 {
			t.Errorf("%s: what came keeps its headers: %v, %v", name, h, err)
		}
	}
}

func TestMutations(t *testing.T) {
	v := mustCompile(t, stripe(), Options{Secrets: secrets("s3cret")})
	d, err := v.Complete(post(`{"id":"evt_1"}`), arrived)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(d.Body) * 8 {
		d.Body[i/8] ^= 1 << (i % 8)
		if v.Verify(context.Background(), d) == nil {
			t.Errorf("bit %d of the body changed: accepted", i)
		}
		d.Body[i/8] ^= 1 << (i % 8)
	}
	if err := v.Verify(context.Background(), d); err != nil {
		t.Error(err)
	}
}
