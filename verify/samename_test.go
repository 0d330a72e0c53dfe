package verify

import (
	"context"
	"encoding/hex"
	"net/http"
	"testing"
)

// TestSameName: what PHP takes for the signed value is what was signed, or the
// delivery is refused.
func TestSameName(t *testing.T) {
	const urlencoded = "application/x-www-form-urlencoded"
	signature := func(text string) string { return hex.EncodeToString(mac("k", text)) }
	hmac := func(signed string) Spec {
		return Spec{HMAC: "sha256", Header: []string{"X-Sig"}, Signed: signed}
	}
	for _, c := range []struct {
		name, signed, text string
		target, body       string
		extra              string // a header beside the signed one
		want               string
	}{
		{"query", "{query:data.id}", "1", "/?data.id=1&x=2", "", "", "ok"},
		{"query folded", "{query:data.id}", "1", "/?data.id=1&data_id=9", "", "", "malformed"},
		{"query folded alone", "[{query:data.id}]{const:x}", "x", "/?data_id=9", "", "", "malformed"},
		{"query after a blank", "{query:id}", "1", "/?id=1&%20id=9", "", "", "malformed"},
		{"query up to a NUL", "{query:id}", "1", "/?id=1&id%00x=9", "", "", "malformed"},
		{"query made an array", "{query:id}", "1", "/?id=1&id[]=9", "", "", "malformed"},
		{"form", "{form:Amount}", "10", "/", "Amount=10&AmountDue=3", "", "ok"},
		{"form after a blank", "{form:Amount}", "10", "/", "Amount=10&+Amount=99", "", "malformed"},
		{"form made an array", "{form:Amount}", "10", "/", "Amount=10&Amount%5Bx%5D=99", "", "malformed"},
		{"header", "{header:X-Id}", "1", "/", "", "X-Ids", "ok"},
		{"header folded", "{header:X-Id}", "1", "/", "", "X_Id", "malformed"},
	} {
		t.Run("B04 "+c.name, func(t *testing.T) {
			d := post(c.body, "X-Sig", signature(c.text))
			d.Target = c.target
			d.Header.Set("Content-Type", urlencoded)
			d.Header.Set("X-Id", "1")
			if c.extra != "" {
				d.Header[http.CanonicalHeaderKey(c.extra)] = []string{"9"}
			}
			v := mustCompile(t, hmac(c.signed), Options{Secrets: secrets("k")})
			if got := outcome(t, v.Verify(context.Background(), d)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestFormType: a form is what PHP takes for one, whatever follows the type.
func TestFormType(t *testing.T) {
	v := mustCompile(t, Spec{HMAC: "sha256", Header: []string{"X-Sig"}, Signed: "{form:id}"}, Options{Secrets: secrets("k")})
	for kind, want := range map[string]string{
		"application/x-www-form-urlencoded": "ok", "Application/X-WWW-Form-Urlencoded; UTF-8": "ok", "application/x-www-form-urlencoded; charset=": "ok",
		"application/x-www-form-urlencodedx": "malformed", "text/plain; application/x-www-form-urlencoded": "malformed", "": "malformed",
	} {
		t.Run("B14 "+kind, func(t *testing.T) {
			d := post("id=1", "X-Sig", hex.EncodeToString(mac("k", "1")))
			d.Header.Set("Content-Type", kind)
			if got := outcome(t, v.Verify(context.Background(), d)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
