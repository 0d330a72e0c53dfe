package oracle

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A difference is a kind of change that oncegate and an SDK judge otherwise, and
// why. Anything else that they don't agree on fails the test, and so does a
// difference that isn't there any more.
type difference struct {
	place string // "body", "target", or the name of a header
	we    bool   // what oncegate says
	why   string
	is    func(b *bench, m mutation) bool
	rare  bool // it takes a signature with certain signs in it
}

const (
	weAccept = true
	weRefuse = false
)

// hexCase: oncegate reads hex in either case, the SDK compares texts.
func hexCase(place string) difference {
	return difference{place: place, we: weAccept, why: "hex in the other case", is: otherCase}
}

// looseBase64: Node's Buffer skips what is no base64, spare bits and what stands
// behind the end; oncegate takes what an encoder writes.
func looseBase64(place string) difference {
	return difference{place: place, we: weRefuse, why: "base64 that no encoder writes", is: func(_ *bench, m mutation) bool {
		end := len(strings.TrimRight(m.was, "=")) - 1
		return m.at() >= end
	}}
}

// brokenText: oncegate reads no JSON of broken UTF-8; others put U+FFFD there, and
// the SDK doesn't look at that member.
func brokenText() difference {
	return difference{place: "body", we: weRefuse, why: "broken UTF-8 in what isn't signed", is: func(_ *bench, m mutation) bool {
		return !utf8.ValidString(m.now)
	}}
}

// unreadBody: the provider signs no body, and the SDK wants to read it.
func unreadBody() difference {
	return difference{place: "body", we: weAccept, why: "the body isn't signed, and is no JSON", is: func(b *bench, _ mutation) bool {
		return !b.KeySigned
	}}
}

// spareBits is looseBase64 of a library that minds what stands behind the end, but
// not the bits of the last sign that no byte needs.
func spareBits(place string) difference {
	d := looseBase64(place)
	d.rare = true
	return d
}

var goDifferences = map[string][]difference{
	"line": {spareBits("X-Line-Signature")},
	"mailgun": {
		{place: "body", we: weRefuse, why: "names of members in another case: encoding/json folds them", is: otherCase},
		brokenText(),
	},
	"paddle":   {hexCase("Paddle-Signature")},
	"razorpay": {hexCase("X-Razorpay-Signature")},
	"sendgrid": {spareBits("X-Twilio-Email-Event-Webhook-Signature")},
}

var nodeDifferences = map[string][]difference{
	"adyen": {
		brokenText(),
		{place: "body", we: weRefuse, why: "base64 that no encoder writes", is: within("hmacSignature")},
	},
	"adyen-platform": {looseBase64("Hmacsignature")},
	"amazon-sns": {
		{place: "body", we: weRefuse, why: "the certificate's URL isn't signed: the SDK looks at the host's form, oncegate at path and end too", is: within("SigningCertURL")},
		{place: "body", we: weRefuse, why: "base64 that no encoder writes", is: within("Signature")},
	},
	"box": {looseBase64("Box-Signature-Primary")},
	"braintree": {
		{place: "body", we: weAccept, why: "the name of the API key, which stands beside the signature", is: func(b *bench, m mutation) bool { return b.key(m.delivery) != "" }},
	},
	"chargebee": {
		{place: "Authorization", we: weAccept, why: "the scheme's name in another case, as RFC 9110 has it", is: otherCase},
		looseBase64("Authorization"),
	},
	"coinbase-commerce": {hexCase("X-Cc-Webhook-Signature")},
	"contentful": {
		{place: "X-Contentful-Signed-Headers", we: weRefuse, why: "a list without its own name: the SDK adds the names that are missing", is: func(*bench, mutation) bool { return true }},
		hexCase("X-Contentful-Signature"),
	},
	"discord-events":       {looseHex("X-Signature-Ed25519")},
	"discord-interactions": {looseHex("X-Signature-Ed25519")},
	"dropbox-sign": {
		{place: "body", we: weAccept, why: "hex in the other case", is: otherCase},
		{place: "body", we: weRefuse, why: "forms that are not urlencoded, and broken UTF-8", is: func(_ *bench, m mutation) bool {
			text, err := url.QueryUnescape(m.now)
			return err != nil || !utf8.ValidString(text)
		}},
	},
	"github":       {hexCase("X-Hub-Signature-256")},
	"linear":       {hexCase("Linear-Signature")},
	"lemonsqueezy": {hexCase("X-Signature")},
	"mercado-pago": {
		{place: "X-Signature", we: weRefuse, why: "names of the list's items in another case", is: otherCase},
		hexCase("X-Signature"),
		{place: "target", we: weRefuse, why: "a query that isn't urlencoded", is: func(_ *bench, m mutation) bool {
			_, err := url.ParseQuery(m.now)
			return err != nil
		}},
	},
	"mollie":   {hexCase("X-Mollie-Signature")},
	"paddle":   {hexCase("Paddle-Signature")},
	"sentry":   {hexCase("Sentry-Hook-Signature")},
	"telegram": {unreadBody()},
	"workos": {
		{place: "Workos-Signature", we: weRefuse, why: "items by position, whatever their name", is: func(_ *bench, m mutation) bool { return true }},
		hexCase("Workos-Signature"),
	},
	"zoom": {hexCase("X-Zm-Signature")},
}

var tokenDifferences = map[string][]difference{
	"google-pubsub": {spareBits("Authorization")},
	"netlify":       {spareBits("X-Webhook-Signature")},
	"plaid":         {spareBits("Plaid-Verification")},
}

// otherCase: the two texts differ in nothing but the case of a letter.
func otherCase(_ *bench, m mutation) bool { return strings.EqualFold(m.was, m.now) }

// looseHex: parseInt takes blanks before a number and anything behind it, and
// what is none becomes 0.
func looseHex(place string) difference {
	return difference{place: place, we: weRefuse, why: "hex that is none", rare: true, is: func(_ *bench, m mutation) bool {
		pair := m.at() &^ 1
		return parseInt(m.was[pair:pair+2]) == parseInt(m.now[pair:pair+2])
	}}
}

// parseInt reads hex as JavaScript's parseInt does.
func parseInt(text string) (n uint64) {
	text = strings.TrimSpace(text)
	for i := range text {
		if digits, err := strconv.ParseUint(text[:i+1], 16, 8); err == nil {
			n = digits
		}
	}
	return n
}

// within: the change lies in this member of the body's JSON.
func within(member string) func(*bench, mutation) bool {
	return func(_ *bench, m mutation) bool {
		start := strings.Index(m.was, `"`+member+`":"`)
		if start < 0 || m.at() < start {
			return false
		}
		start += len(member) + 4
		return m.at() <= start+strings.IndexByte(m.was[start:], '"')
	}
}

// judged collects which of an SDK's differences were seen.
type judged struct {
	known []difference
	seen  []bool
}

func judge(known []difference) *judged { return &judged{known, make([]bool, len(known))} }

// explains reports whether what the two say of a change is a known difference.
func (j *judged) explains(b *bench, m mutation, mine bool) bool {
	for i, d := range j.known {
		if d.place == m.place && d.we == mine && d.is(b, m) {
			j.seen[i] = true
			return true
		}
	}
	return false
}

// done fails where a difference is gone, or was there never.
func (j *judged) done(t *testing.T) {
	t.Helper()
	for i, seen := range j.seen {
		if !seen && !j.known[i].rare {
			t.Errorf("%s: %s: no such difference was seen", j.known[i].place, j.known[i].why)
		}
	}
}
