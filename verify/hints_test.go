package verify

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestHints(t *testing.T) {
	const key = "30313233343536373839616263646566"
	square := Spec{HMAC: "sha256", Header: []string{"X-Sig"}, Format: "{base64}", Signed: "{url}{body}"}
	at := func(public string, secret ...string) Options {
		return Options{Secrets: secrets(secret...), PublicURL: public}
	}
	hex := hub()
	hex.Encoding = "hex"
	for _, c := range []struct {
		name          string
		sender, route Spec
		signs, checks Options
		sent, arrives string
		want          string
	}{
		{"newline added", hub(), hub(), at("", "k"), at("", "k"), "{}", "{}\n", "without the newline"},
		{"newline lost", hub(), hub(), at("", "k"), at("", "k"), "{}\n", "{}", "with a newline"},
		{"CRLF lost", hub(), hub(), at("", "k"), at("", "k"), "{\r\n}", "{\n}", "CRLF"},
		{"written anew", hub(), hub(), at("", "k"), at("", "k"), `{"a":1,"b":"\/"}`, "{\n  \"a\": 1,\n  \"b\": \"\\/\"\n}", "no white space"},
		{"secret is hex", hex, hub(), at("", key), at("", key), "{}", "{}", "read as hex"},
		{"blanks around the secret", hub(), hub(), at("", "k"), at("", " k "), "{}", "{}", "blanks"},
		{"another scheme", square, square, at("http://shop.example", "k"), at("https://shop.example", "k"), "{}", "{}", "http://shop.example"},
		{"another host", square, square, at("https://shop.example", "k"), at("https://internal", "k"), "{}", "{}", "https://shop.example"},
		{"wrong secret", hub(), hub(), at("", "k"), at("", "other"), "{}", "{}", ""},
		{"genuine", hub(), hub(), at("", "k"), at("", "k"), "{}", "{}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := mustCompile(t, c.sender, c.signs).Complete(post(c.sent), arrived.Add(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			d.Body = []byte(c.arrives)
			hints := mustCompile(t, c.route, c.checks).Hints(context.Background(), d)
			if c.want == "" && len(hints) > 0 || c.want != "" && (len(hints) == 0 || !strings.Contains(hints[0], c.want)) {
				t.Errorf("%q, want the first to say %q", hints, c.want)
			}
		})
	}
}
