package oracle

import (
	"fmt"
	"slices"
	"strings"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// A mutation is a delivery with one bit changed.
type mutation struct {
	delivery *delivery.Delivery
	place    string // "body", "target", or the name of a header
	was, now string // what stands there
}

func (m mutation) String() string { return fmt.Sprintf("%s %q", m.place, m.now) }

// at is where the two texts differ.
func (m mutation) at() int {
	for i := range len(m.was) {
		if m.was[i] != m.now[i] {
			return i
		}
	}
	return len(m.was)
}

// mutations changes each bit of the body and of the headers, and of the target
// where that is signed.
func mutations(b *bench, d *delivery.Delivery) []mutation {
	all := changed(d, "body", string(d.Body), func(c *delivery.Delivery, now string) bool {
		c.Body = []byte(now)
		return true
	})
	for name, values := range d.Header {
		if name == "Content-Type" {
			continue
		}
		all = append(all, changed(d, name, values[0], func(c *delivery.Delivery, now string) bool {
			c.Header = d.Header.Clone()
			c.Header.Set(name, now)
			return sendable(now)
		})...)
	}
	if slices.ContainsFunc(b.Verify, signsTarget) {
		all = append(all, changed(d, "target", d.Target, func(c *delivery.Delivery, now string) bool {
			c.Target = now
			return strings.HasPrefix(now, "/") && !strings.ContainsFunc(now, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' })
		})...)
	}
	return all
}

// changed flips the bits of one text, one at a time. set puts it in its place
// and says whether a sender could do so.
func changed(d *delivery.Delivery, place, was string, set func(*delivery.Delivery, string) bool) (all []mutation) {
	for i := range len(was) * 8 {
		text := []byte(was)
		text[i/8] ^= 1 << (i % 8)
		c := *d
		if set(&c, string(text)) {
			all = append(all, mutation{&c, place, was, string(text)})
		}
	}
	return all
}

// sendable reports whether a text can be a header's value.
func sendable(text string) bool {
	return strings.TrimSpace(text) == text && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func signsTarget(s verify.Spec) bool {
	for _, part := range []string{"{url}", "{path}", "{target}", "{query:"} {
		if strings.Contains(s.Signed, part) {
			return true
		}
	}
	return slices.ContainsFunc(s.Any, signsTarget)
}
