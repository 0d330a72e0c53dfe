package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
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
	hex, base64d, whsec := hub(), hub(), hub()
	hex.Encoding, base64d.Encoding, whsec.Encoding = "hex", "base64", "whsec"
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
		{"line ends of Windows", hub(), hub(), at("", "k"), at("", "k"), "{\n}", "{\r\n}", "LF line ends"},
		{"byte order mark", hub(), hub(), at("", "k"), at("", "k"), "{}", "\xef\xbb\xbf{}", "byte order mark"},
		{"PHP's escapes lost", hub(), hub(), at("", "k"), at("", "k"), `{"u":"https:\/\/a\/\u00fc \ud83d\ude00"}`, `{"u": "https://a/ü 😀"}`, "as PHP writes it"},
		{"PHP's escapes added", hub(), hub(), at("", "k"), at("", "k"), `{"u":"https://a/ü","n":1.50}`, `{"u":"https:\/\/a\/\u00fc","n":1.50}`, "as JavaScript writes it"},
		{"Python's blanks lost", hub(), hub(), at("", "k"), at("", "k"), `{"u": "\u00fc", "n": [1, 2]}`, `{"u":"ü","n":[1,2]}`, "as Python writes it"},
		{"Go's escapes lost", hub(), hub(), at("", "k"), at("", "k"), `{"u":"a\u0026b\u003c\n"}`, `{"u":"a&b<\n"}`, "as Go writes it"},
		{"a form's plus lost", hub(), hub(), at("", "k"), at("", "k"), "a=b+c&d=e%2F", "a=b%20c&d=e%2f", "written as +"},
		{"a form's plus added", hub(), hub(), at("", "k"), at("", "k"), "a=b%20c&d=e%2F", "a=b+c&d=e%2F", "written as %20"},
		{"made UTF-8", hub(), hub(), at("", "k"), at("", "k"), "n=M\xfcller", "n=Müller", "in ISO 8859-1"},
		{"made UTF-8 twice", hub(), hub(), at("", "k"), at("", "k"), `{"n":"Müller"}`, `{"n":"MÃ¼ller"}`, "in ISO 8859-1"},
		{"made ISO 8859-1", hub(), hub(), at("", "k"), at("", "k"), `{"n":"Müller"}`, "{\"n\":\"M\xfcller\"}", "in UTF-8"},
		{"secret is base64", base64d, hub(), at("", key), at("", key), "{}", "{}", "read as base64"},
		{"secret is whsec", whsec, hub(), at("", "whsec_"+key), at("", "whsec_"+key), "{}", "{}", "read as whsec"},
		{"secret is text", hub(), base64d, at("", key), at("", key), "{}", "{}", "read as text"},
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

// TestHintsOnTheURL: the sender was told another path than arrives.
func TestHintsOnTheURL(t *testing.T) {
	spec := Spec{HMAC: "sha256", Header: []string{"X-Sig"}, Format: "{base64}", Signed: "{url}{body}"}
	v := mustCompile(t, spec, Options{Secrets: secrets("k"), PublicURL: "https://shop.example"})
	for _, c := range []struct{ told, arrives, want string }{
		{"/hook/", "/hook", "with a slash"},
		{"/hook", "/hook/", "without the slash"},
		{"/hook", "/hook?utm=1", "without the query"},
		{"/hook/?a=1", "/hook?a=1", "with a slash"},
		{"/other", "/hook", ""},
	} {
		t.Run(c.told+" as "+c.arrives, func(t *testing.T) {
			d := post("{}")
			d.Target = c.told
			d, err := v.Complete(d, arrived)
			if err != nil {
				t.Fatal(err)
			}
			d.Target = c.arrives
			hints := v.Hints(context.Background(), d)
			if c.want == "" && len(hints) > 0 || c.want != "" && (len(hints) == 0 || !strings.Contains(hints[0], c.want)) {
				t.Errorf("%q, want the first to say %q", hints, c.want)
			}
		})
	}
}

// FuzzRewrite: JSON that is written in another style means the same, and what is
// written in a style stays as it is in that style.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"\u00e9\/ü😀<&>\n\u001f"],"":null}`, `"\ud83d\ude00"`, `[]`, `{`, `"\ud800"`, " 1 "} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, style := range map[string]jsonStyle{"JavaScript": javaScript, "PHP": php, "Python": python, "Go": golang} {
			once := style.rewrite(text)
			if again := style.rewrite(once); !bytes.Equal(once, again) {
				t.Errorf("%s: %q, and again %q", name, once, again)
			}
			var before, after any
			if json.Unmarshal(text, &before) == nil && (json.Unmarshal(once, &after) != nil || !reflect.DeepEqual(before, after)) {
				t.Errorf("%s: %q became %q", name, text, once)
			}
		}
	})
}
