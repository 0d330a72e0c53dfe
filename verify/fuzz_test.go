package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
)

// FuzzVerifyHeader: whatever stands in the headers that carry a signature and
// its time, nothing panics, nothing is accepted, and the error is ours.
func FuzzVerifyHeader(f *testing.F) {
	var all []*Verifier
	names := []string{"Stripe-Signature", "webhook-signature", "X-Hub-Signature-256", "X-Numbered-1"}
	for _, s := range []Spec{stripe(), standard(), hub(),
		{HMAC: "sha512", Header: []string{"X-Numbered-*"}, List: ",", Format: "{time},{HEX}", Signed: "{time}{url}{body}", Time: &Time{Unit: "ms"}},
		{Token: true, Header: []string{"X-Hub-Signature-256"}, Format: "a{token}b"},
		{Basic: true, Secrets: []string{"user:password"}},
		{JWT: "HS256", Header: []string{"Stripe-Signature"}, Claims: &Claims{}},
	} {
		v, err := Compile([]Spec{s}, Options{Secrets: secrets("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"), PublicURL: "https://shop.example"})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, v)
	}
	for _, seed := range []string{"t=1,v1=00", "v1,AAAA v1a,", "sha256=zz", "1772600767000,ab,", "Basic Og==", "t=1772600767,v1=" + strings.Repeat("ab", 32), ",,==", "eyJhbGciOiJIUzI1NiJ9.e30.x"} {
		f.Add(seed, "1772600767", []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, signature, time string, body []byte) {
		d := post(string(body), "webhook-id", "msg_1", "webhook-timestamp", time, "Authorization", signature)
		for _, name := range names {
			d.Header.Add(name, signature)
		}
		for _, v := range all {
			plausible := v.Plausible(d.Header)
			err := v.Verify(context.Background(), d)
			if err == nil {
				t.Errorf("accepted %q", signature)
			}
			outcome(t, err)
			if plausible != nil && outcome(t, plausible) != outcome(t, err) {
				t.Errorf("Plausible: %v; Verify: %v", plausible, err)
			}
		}
	})
}

// FuzzDocument: what a pointer finds is what another parser finds there.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a":"x"}`, `{"a":{"b":[1,2.50,"\u00e9"]}}`, `[1e21]`, `{"a":1,"a":2}`, `{"a~/b":null}`, "\xef\xbb\xbf{}", `{"a":"\ud800"}`} {
		f.Add([]byte(seed), "/a")
		f.Add([]byte(seed), "/a/b/1")
	}
	f.Fuzz(func(t *testing.T, body []byte, pointer string) {
		if !strings.HasPrefix(pointer, "/") || bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
			return
		}
		r := &request{Delivery: post(string(body))}
		doc, err := r.json("")
		if err != nil {
			outcome(t, err)
			return
		}
		got, err := doc.text(pointer)
		if err != nil {
			if !errors.Is(err, errAbsent) {
				outcome(t, err)
			}
			got = "?"
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("another parser refuses it: %v", err)
		}
		if want := walk(value, strings.Split(pointer, "/")[1:]); got != want {
			t.Errorf("%q, another parser has %q", got, want)
		}
	})
}

// walk follows a pointer through a decoded value; "?" is no text.
func walk(value any, steps []string) string {
	for _, step := range steps {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return "?"
			}
			value = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || strconv.Itoa(i) != step || i < 0 || i >= len(v) {
				return "?"
			}
			value = v[i]
		default:
			return "?"
		}
	}
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return "?"
}
