package provider

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// TestGivingUp: no refusal that may be mended is answered with what the provider
// takes for the end: a secret that is being changed, a clock, a store.
func TestGivingUp(t *testing.T) {
	refusals := map[string]int{
		"unverified": 401, "unkeyed": 422, "mismatch": 409, "malformed": 400,
		"busy": 503, "settling": 503, "held": 503, "overload": 503, "unavailable": 503, "unreached": 502, "unknown": 504,
	}
	for _, p := range all(t) {
		if p.Mode != "enforce" || p.Retries.Never {
			continue
		}
		for _, final := range p.Retries.Final {
			t.Run(p.Name+" after "+final, func(t *testing.T) {
				if final == "any answer" {
					if p.OnStoreOutage != "forward" || p.OnOverload != "forward" {
						t.Error("a refusal is never asked for again, and an outage is refused")
					}
					return
				}
				for word, status := range refusals {
					if other, ok := p.Statuses[word]; ok {
						status = other
					}
					if ends(t, final, status) {
						t.Errorf("%s is answered %d", word, status)
					}
				}
			})
		}
	}
}

// ends reports whether a status is among those that Retries.Final describes.
func ends(t *testing.T, final string, status int) bool {
	t.Helper()
	class, but, _ := strings.Cut(final, " but ")
	switch {
	case class == "all":
		return status/100 != 5 && !strings.Contains(but, strconv.Itoa(status))
	case class == "4xx":
		return status/100 == 4 && !strings.Contains(but, strconv.Itoa(status))
	}
	word, _, _ := strings.Cut(final, " ")
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatalf("%q says no status", final)
	}
	return n == status
}

// TestHandshakeHeaders: a header that is not signed makes no handshake of an
// event, or whoever holds a genuine delivery could have it run again.
func TestHandshakeHeaders(t *testing.T) {
	for _, p := range all(t) {
		for _, h := range p.Handshakes {
			if h.Unsigned {
				continue
			}
			t.Run("B08 "+p.Name+"/"+h.Name, func(t *testing.T) {
				d := p.Delivery("/x")
				claim(d, h.When)
				match, err := keyextract.CompileCondition(h.When)
				if err != nil {
					t.Fatal(err)
				}
				if holds, _ := match.Holds(keyextract.Parse(d)); holds {
					t.Error("the event in the sample is one, with that header")
				}
			})
		}
	}
}

// claim gives a delivery the headers that a condition asks for.
func claim(d *delivery.Delivery, when keyextract.Condition) {
	for _, each := range when.All {
		claim(d, each)
	}
	switch {
	case when.Header == "":
	case when.Present != nil && !*when.Present:
		d.Header.Del(when.Header)
	case when.Equals != nil:
		d.Header[http.CanonicalHeaderKey(when.Header)] = []string{*when.Equals}
	default:
		d.Header[http.CanonicalHeaderKey(when.Header)] = []string{"x"}
	}
}
