package provider

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"testing"
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
