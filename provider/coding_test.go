package provider

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"testing"

	"oncegate/keyextract"
)

// TestBodyOfTwoReaders: a genuine form behind a compressed one is read by the app
// as it stands, and must not be verified so and then be read decompressed for its
// key: a captured delivery could come again under any key.
func TestBodyOfTwoReaders(t *testing.T) {
	for _, coding := range []string{"deflate", "Deflate", "br, deflate", "identity, deflate"} {
		t.Run("B08 "+coding, func(t *testing.T) {
			b := get(t, "braintree")
			d := b.sign(t, b.sample(""), now)
			if err := b.verifier.Verify(context.Background(), d); err != nil {
				t.Fatal(err)
			}
			genuine := d.Body
			d.Body = append(append(deflated(t), '&'), genuine...)
			if err := b.verifier.Verify(context.Background(), d); err != nil {
				t.Fatalf("without a coding it is a form: %v", err)
			}
			d.Header.Set("Content-Encoding", coding)
			if err := b.verifier.Verify(context.Background(), d); err == nil {
				t.Errorf("verified, with the key %q", b.key(d))
			}
			d.Header.Set("Content-Encoding", "UTF-8") // which is none
			if err := b.verifier.Verify(context.Background(), d); err != nil {
				t.Error(err)
			}
		})
	}
}

// deflated returns a form, compressed, that is itself one odd field of a form.
func deflated(t *testing.T) []byte {
	t.Helper()
	for n := range 1000 {
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		if _, err := fmt.Fprintf(w, "bt_payload=forged%d&bt_signature=x", n); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.ContainsAny(out.Bytes(), "%&=") {
			return out.Bytes()
		}
	}
	t.Fatal("none without signs of a form's own")
	return nil
}

// TestSlackAsForm: Slack signs the body and not its Content-Type, and everybody
// in a workspace writes into the body: sent once more as a form, an event is the
// same event, or refused; no handshake and no other.
func TestSlackAsForm(t *testing.T) {
	b := get(t, "slack")
	for _, text := range []string{"&trigger_id=2&", "&ssl_check=1&", "&payload=%7B%7D&", `&payload=%7B%22trigger_id%22:%222%22%7D&`, "plain"} {
		t.Run("B08 "+text, func(t *testing.T) {
			d := b.sample(`{"type":"event_callback","event_id":"Ev1","event":{"type":"message","text":"` + text + `"}}`)
			d = b.sign(t, d, now)
			d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if err := b.verifier.Verify(context.Background(), d); err != nil {
				t.Fatal(err)
			}
			if key := b.key(d); key != "" && key != "Ev1" {
				t.Errorf("it is %q now", key)
			}
			for _, h := range b.Handshakes {
				match, err := keyextract.CompileCondition(h.When)
				if err != nil {
					t.Fatal(err)
				}
				if holds, _ := match.Holds(keyextract.Parse(d)); holds {
					t.Errorf("it is the handshake %s", h.Name)
				}
			}
		})
	}
}
