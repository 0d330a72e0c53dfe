package provider

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/verify"
)

// testNothing takes each part of the key away in every way. What is no value is no
// key, unless the part may be absent; it never leaves the key as it was.
func (b *bench) testNothing(t *testing.T) {
	key := b.key(b.sample(""))
	for _, part := range b.leaves(t) {
		for _, value := range []json.RawMessage{absent, json.RawMessage("null"), json.RawMessage(`""`), json.RawMessage(`" \t"`), json.RawMessage("true"), json.RawMessage("{}"), json.RawMessage("[1]")} {
			d, inJSON := b.sample(""), true
			for _, l := range part {
				if !l.settable() {
					return
				}
				inJSON = inJSON && l.JSON != ""
				d = b.alter(t, d, l, value)
			}
			if !inJSON && strings.Trim(text(value), " \t") != "" && string(value) != string(absent) {
				continue // "true" is a text there
			}
			got := b.key(d)
			if len(part) > 0 && (got == key || got != "" && !part[0].optional) {
				t.Errorf("%+v with %s: the key is %q", part, value, got)
			}
		}
	}
}

// testNumbers: two numbers that a float can't tell apart are two keys.
func (b *bench) testNumbers(t *testing.T) {
	for _, part := range b.leaves(t) {
		if len(part) == 0 || part[0].JSON == "" {
			continue
		}
		seen := map[string]string{}
		for _, number := range []string{"9007199254740992", "9007199254740993", "9007199254740993.0", `"9007199254740993"`, "1e21"} {
			key := b.key(b.alter(t, b.sample(""), part[0], json.RawMessage(number)))
			if before, is := seen[key]; is && !(part[0].As == "text" && strings.Trim(number, `"`) == strings.Trim(before, `"`)) || key == "" {
				t.Errorf("%s: %s and %s have the key %q", part[0].JSON, before, number, key)
			}
			seen[key] = number
		}
	}
}

// testTwice: what PHP and others could read in two ways has no key.
func (b *bench) testTwice(t *testing.T) {
	for _, part := range b.leaves(t) {
		for _, l := range part {
			if !l.settable() {
				continue
			}
			if key := b.key(b.twice(t, b.sample(""), l)); key != "" && !(len(part) > 1) {
				t.Errorf("%+v stands twice, and the key is %q", l, key)
			}
		}
	}
}

// testOtherID: a signed delivery under another ID is refused where the preset says
// that the key is signed. Where it isn't the preset decides what becomes of another
// body under a known ID, and never refuses what the provider itself changes.
func (b *bench) testOtherID(t *testing.T) {
	if b.KeySigned {
		d := b.sign(t, b.sample(""), now)
		for _, part := range b.leaves(t) {
			for _, l := range part {
				if !l.settable() {
					continue
				}
				c := b.alter(t, d, l, json.RawMessage(`"other"`))
				if b.key(c) != b.key(d) && b.verifier.Verify(context.Background(), c) == nil {
					t.Errorf("%+v: accepted under the key %q", l, b.key(c))
				}
			}
		}
		return
	}
	if b.Mode == "observe" || b.Each != "" {
		return // claims nothing, or is never refused for its body
	}
	changes := b.Sample.Retry != "" || slices.ContainsFunc(b.Differs, func(s string) bool { return strings.Contains(s, "body") })
	switch {
	case b.OnMismatch == "":
		t.Error("the key isn't signed, and the preset doesn't say on_mismatch")
	case b.OnMismatch == "refuse" && changes:
		t.Error("refuses another body, and the provider's own retries have one: the event would be lost")
	case b.OnMismatch == "refuse" && !whole(b.Verify) && !b.CallerRequired:
		t.Error("refuses another body, and whoever passes may write any")
	}
}

// testParts: two events that differ in one part are two events.
func (b *bench) testParts(t *testing.T) {
	key := b.key(b.sample(""))
	for _, part := range b.leaves(t) {
		if len(part) == 0 || !part[0].settable() {
			continue
		}
		if got := b.key(b.alter(t, b.sample(""), part[0], json.RawMessage(`"another-1"`))); got == key || got == "" {
			t.Errorf("%+v: another value there has the key %q, before %q", part[0], got, key)
		}
	}
}

// testBatch: one key an item, whatever their order and number.
func (b *bench) testBatch(t *testing.T) {
	d := b.sample("")
	pointer := strings.TrimPrefix(b.Each, "#")
	items := func(all ...json.RawMessage) string {
		c := *d
		if c.Body = joined('[', all, ']'); pointer != "" {
			c.Body = setJSON(t, d.Body, pointer, c.Body)
		}
		keys := strings.Fields(b.key(&c))
		slices.Sort(keys)
		return strings.Join(keys, " ")
	}
	one := getJSON(t, d.Body, pointer+"/0")
	last := b.leaves(t)[len(b.Key)-1][0]
	two := setJSON(t, one, last.JSON, json.RawMessage(`"another-1"`))
	both := items(one, two)
	if len(strings.Fields(both)) != 2 || items(one) == items(two) {
		t.Fatalf("two items have the keys %q", both)
	}
	for what, got := range map[string]string{"reordered": items(two, one), "with a duplicate": items(one, two, one, two)} {
		if got != both {
			t.Errorf("%s: keys %q, want %q", what, got, both)
		}
	}
	for what, got := range map[string]string{"empty": items(), "with an item of no kind": items(one, json.RawMessage("7")), "with an empty item": items(one, json.RawMessage("{}"))} {
		if got != "" {
			t.Errorf("%s: keys %q", what, got)
		}
	}
}

// testForm: a form has the same key in its other dress, and none under another type.
func (b *bench) testForm(t *testing.T) {
	d := b.sample("")
	if got := b.key(asMultipart(t, d)); got != b.key(d) {
		t.Errorf("multipart: key %q, urlencoded %q", got, b.key(d))
	}
	c := *d
	c.Header = d.Header.Clone()
	c.Header.Set("Content-Type", "text/plain")
	if onlyForm := !slices.ContainsFunc(b.Key, func(p keyextract.Part) bool { return p.Header != "" }); onlyForm && b.key(&c) != "" {
		t.Errorf("as plain text it has the key %q", b.key(&c))
	}
}

// testBytes adds what no parser would mind.
func (b *bench) testBytes(t *testing.T) {
	d := b.sign(t, b.sample(""), now)
	for what, body := range map[string]string{
		"a newline behind": string(d.Body) + "\n", "a blank before": " " + string(d.Body), "a byte order mark": "\xef\xbb\xbf" + string(d.Body),
		"one byte less": string(d.Body[:len(d.Body)-1]), "nothing": "", "the body twice": string(d.Body) + string(d.Body),
	} {
		c := *d
		c.Body = []byte(body)
		if b.verifier.Verify(context.Background(), &c) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// testSeveral: one right signature among several is enough, on one line where
// the scheme has a list, or on several lines.
func (b *bench) testSeveral(t *testing.T) {
	other, err := verify.Generate(b.Verify)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := verify.Compile(b.Verify, verify.Options{PublicURL: "https://shop.example", Secrets: secrets(other)})
	if err != nil {
		t.Fatal(err)
	}
	right := b.sign(t, b.sample(""), now)
	wrong, err := stranger.Complete(b.sample(""), now)
	if err != nil {
		t.Fatal(err)
	}
	if b.verifier.Verify(context.Background(), wrong) == nil {
		t.Fatal("another's signature is accepted")
	}
	s, name := b.scheme(), ""
	for have := range right.Header {
		if signature([]verify.Spec{{Header: s.Header}}, have) && right.Header.Get(have) != wrong.Header.Get(have) {
			name = have
		}
	}
	lines := [][]string{{wrong.Header.Get(name), right.Header.Get(name)}, {right.Header.Get(name), wrong.Header.Get(name)}}
	if s.List != "" {
		given := strings.Split(right.Header.Get(name), s.List)
		strange := slices.DeleteFunc(strings.Split(wrong.Header.Get(name), s.List), func(item string) bool { return slices.Contains(given, item) })
		lines = [][]string{{strings.Join(append(slices.Clone(strange), given...), s.List)}, {strings.Join(append(slices.Clone(given), strange...), s.List)}}
	}
	for _, l := range lines {
		c := *right
		c.Header = right.Header.Clone()
		c.Header[name] = l
		if err := b.verifier.Verify(context.Background(), &c); err != nil {
			t.Errorf("%q: %v", l, err)
		}
	}
}

// testNoTime: a time that is no plain number (or no RFC 3339) is refused before
// anything is compared.
func (b *bench) testNoTime(t *testing.T) {
	s := b.scheme()
	d := b.sign(t, b.sample(""), now)
	if s.Time.Header == "" {
		return // in the signature or the body: mutated with these
	}
	for _, text := range []string{"", "now", "-1772600767", "+1772600767", "1772600767.5", "1.7e9", "0x69a7c4bf", " 1772600767x", "٠١٢", strings.Repeat("9", 40)} {
		c := *d
		c.Header = d.Header.Clone()
		c.Header.Set(s.Time.Header, text)
		if err := b.verifier.Plausible(c.Header); err == nil && len(b.Verify) == 1 && len(b.Verify[0].Any) == 0 {
			t.Errorf("%q is plausible", text)
		}
		if b.verifier.Verify(context.Background(), &c) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// testAgain: the same event again, as it was, as the provider changes it, and sent
// by hand a day later, is the same event.
func (b *bench) testAgain(t *testing.T) {
	send := func(body string, at time.Time) *delivery.Delivery {
		d := b.sample(body)
		if b.sign != nil {
			d = b.sign(t, d, at)
			if err := b.verifier.Verify(context.Background(), d); err != nil {
				t.Errorf("at %s: %v", at, err)
			}
		}
		return d
	}
	first := send("", now)
	for what, again := range map[string]*delivery.Delivery{
		"a duplicate": send("", now), "a retry": send(b.Sample.Retry, now.Add(time.Hour)), "a resend": send("", now.Add(24*time.Hour)),
	} {
		if b.key(again) != b.key(first) || b.key(first) == "" {
			t.Errorf("%s: key %q, before %q", what, b.key(again), b.key(first))
		}
	}
	extra := *first
	extra.Header = first.Header.Clone()
	for name, value := range map[string]string{"X-Retry-Num": "2", "User-Agent": "other", "Date": "Wed, 04 Mar 2026 05:06:07 GMT"} {
		extra.Header.Set(name, value)
	}
	if b.key(&extra) != b.key(first) {
		t.Errorf("headers that say which try it is give the key %q", b.key(&extra))
	}
}
