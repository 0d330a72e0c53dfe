package locktest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"oncegate/lock"
)

var byteCases = []testCase{
	{"B06 key texts of every length", func(p *place) {
		noise := visible(rand.New(rand.NewPCG(6, 6)), lock.MaxKeyText)
		for _, text := range []string{noise[:2700], strings.Repeat("x", 8000), noise} {
			b := begin(text)
			p.same(p.applied(b), b.Next)
			r := p.read(b.Next.Key)
			p.same(r, b.Next)
			p.refused(begin(text), r)
		}
	}},
	{"B11 keys that differ in one byte are different", func(p *place) {
		d := sha256.Sum256(nil)
		last, zero, full := d, lock.Digest{}, lock.Digest{}
		last[31]++
		for i := range full {
			full[i] = 0xff
		}
		var batch []lock.Change
		for _, k := range []lock.Key{
			{Namespace: "shop", Scope: "stripe", Digest: d},
			{Namespace: "Shop", Scope: "stripe", Digest: d},
			{Namespace: "shop", Scope: "Stripe", Digest: d},
			{Namespace: "shop", Scope: "stripe_", Digest: d},
			{Namespace: "shop", Scope: "stripe%", Digest: d},
			{Namespace: "shops", Scope: "tripe", Digest: d},
			{Namespace: "sho", Scope: "pstripe", Digest: d},
			{Namespace: "shop", Scope: "", Digest: d},
			{Namespace: strings.Repeat("n", 64), Scope: strings.Repeat("s", 128), Digest: d},
			{Namespace: "shop", Scope: `'"\;{}:*?[]`, Digest: d},
			{Namespace: "shop", Scope: "stripe", Digest: last},
			{Namespace: "shop", Scope: "stripe", Digest: zero},
			{Namespace: "shop", Scope: "stripe", Digest: full},
		} {
			c := begin("e")
			c.Next.Key = k
			c.Next.Text = fmt.Sprint(k)
			batch = append(batch, c)
		}
		for i, r := range p.sendAll(batch...) {
			if !r.Applied(batch[i]) {
				p.Fatalf("%v is taken for another", batch[i].Next.Key)
			}
		}
		for _, c := range batch {
			p.same(p.read(c.Next.Key), c.Next)
		}
	}},
	{"B39 blobs come back byte for byte", func(p *place) {
		random := rand.New(rand.NewPCG(39, 39))
		big := make([]byte, 1<<20)
		for i := range big {
			big[i] = byte(random.Uint32())
		}
		for i, blob := range [][]byte{
			nil, {0}, allBytes(), bytes.Repeat([]byte{0}, 5000), bytes.Repeat([]byte{0xff}, 100),
			[]byte(`{"b":1,"a":1.0,"a":2}  `), []byte(`\x00 \\ '' "" $1 ? :x`), big,
		} {
			b := begin(fmt.Sprint(i))
			b.Next.Request = blob
			r := p.applied(b)
			c := done(r, "")
			c.Next.AnswerHeader, c.Next.AnswerBody = blob, blob
			p.applied(c)
			p.same(p.read(r.Key), c.Next)
			c.Next.FirstSeen = 0
			p.refused(begin(fmt.Sprint(i)), c.Next)
		}
	}},
	{"tags come back byte for byte", func(p *place) {
		b := begin("e")
		b.Next.Tags = []string{"", "a=", "a=1", "a=2,b=3", "é=ü", "q='\"\\", "zero=\x00", strings.Repeat("t", 300), string(allBytes())}
		p.applied(b)
		p.same(p.read(b.Next.Key), b.Next)
	}},
	{"a record of every kind comes back", func(p *place) {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 60 {
			c := lock.Change{Seen: i%2 == 0, Next: anyRecord(random, i)}
			want := c.Next
			if !want.Expires() {
				want.Retain = 0
			}
			p.same(p.applied(c), want)
			p.same(p.read(c.Next.Key), want)
		}
	}},
}

// anyRecord returns a record with random values in every field that a change
// may set.
func anyRecord(r *rand.Rand, i int) lock.Record {
	length := func(most int) int { return r.IntN(most + 1) }
	blob := func() []byte {
		b := make([]byte, length(3000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	span := func() time.Duration { return time.Hour + time.Duration(r.Int64N(int64(1000*time.Hour))) }
	text := visible(r, 1+length(500))
	n := lock.Record{
		Key:          lock.KeyOf("suite", fmt.Sprint("scope-", i), text),
		Text:         text,
		Role:         lock.Role(r.IntN(4)),
		State:        lock.State(r.IntN(6)),
		Mark:         lock.Mark(r.IntN(32)),
		Reason:       []string{"", lock.ReasonGivenUp, lock.ReasonTimeout}[r.IntN(3)],
		Attempt:      r.IntN(1 << 30),
		Unanswered:   r.IntN(1 << 30),
		Token:        lock.NewToken(),
		Version:      lock.NewVersion(),
		Lease:        span(),
		RunsUntil:    span(),
		Retain:       span(),
		Due:          span(),
		Group:        visible(r, length(300)),
		Deliveries:   r.IntN(1 << 30),
		AnswerStatus: r.IntN(1000),
		AnswerHeader: blob(),
		AnswerBody:   blob(),
		Request:      blob(),
		Payload:      sha256.Sum256(blob()),
	}
	if n.Role == lock.RoleAlias {
		n.State, n.Names = lock.StateNone, sha256.Sum256(blob())
	}
	for range r.IntN(4) {
		n.Tags = append(n.Tags, visible(r, length(100)))
	}
	return n
}

// visible returns n random bytes of visible ASCII.
func visible(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(0x21 + r.IntN(0x7f-0x21))
	}
	return string(b)
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
