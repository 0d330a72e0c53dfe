package shop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// tolerance is how old a signature may be, or how far in the future: what
// Stripe's own libraries take.
const tolerance = 5 * time.Minute

var (
	errUnsigned = errors.New("no Stripe-Signature with a time and a v1")
	errStale    = errors.New("signed too long ago, or in the future")
	errWrong    = errors.New("signature does not match")
)

// check verifies a Stripe-Signature header (docs.stripe.com/webhooks, "verify
// manually"): v1 is the hex HMAC-SHA256 of "<t>.<body>" under the endpoint's
// secret, and there may be several.
func check(header string, body []byte, secret string, now time.Time) error {
	var at string
	var given []string
	for item := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name {
		case "t":
			at = value
		case "v1":
			given = append(given, value)
		}
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || len(given) == 0 {
		return errUnsigned
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errStale
	}
	want := sum(at, body, secret)
	for _, v := range given {
		got, err := hex.DecodeString(v)
		if err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errWrong
}

func sum(at string, body []byte, secret string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(at))
	h.Write([]byte("."))
	h.Write(body)
	return h.Sum(nil)
}
