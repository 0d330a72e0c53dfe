package verify

import (
	"bytes"
	"context"
	"testing"
)

func BenchmarkVerify(b *testing.B) {
	for name, s := range map[string]Spec{"timed list": stripe(), "space list": standard(), "one header": hub()} {
		b.Run(name, func(b *testing.B) {
			v, err := Compile([]Spec{s}, Options{Secrets: secrets("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")})
			if err != nil {
				b.Fatal(err)
			}
			d, err := v.Complete(post(string(bytes.Repeat([]byte("x"), 4096)), "webhook-id", "msg_1"), arrived)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(d.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Verify(context.Background(), d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
