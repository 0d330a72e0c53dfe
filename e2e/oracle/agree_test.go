package oracle

import (
	"testing"

	"oncegate/internal/delivery"
)

// An sdk answers of each delivery whether it is genuine.
type sdk func(t *testing.T, b *bench, all []*delivery.Delivery) []bool

// agree holds oncegate and an SDK against each other: on what oncegate signed,
// and on that with each bit changed.
func agree(t *testing.T, name string, known []difference, accepts sdk) {
	t.Helper()
	b := prepare(t, name)
	agreeOn(t, b, b.sample(t), known, accepts)
}

func agreeOn(t *testing.T, b *bench, d *delivery.Delivery, known []difference, accepts sdk) {
	t.Helper()
	if err := b.ours(d); err != nil {
		t.Fatalf("oncegate refuses what is genuine: %v", err)
	}
	if !accepts(t, b, []*delivery.Delivery{d})[0] {
		t.Fatal("the SDK refuses what is genuine")
	}
	key, all := b.key(d), mutations(b, d)
	asked := make([]*delivery.Delivery, len(all))
	for i, m := range all {
		asked[i] = m.delivery
	}
	differences := judge(known)
	for i, theirs := range accepts(t, b, asked) {
		m := all[i]
		mine := b.ours(m.delivery) == nil
		if mine && b.KeySigned && b.key(m.delivery) != key && b.key(m.delivery) != "" {
			t.Errorf("%s: oncegate accepts another key", m)
		}
		if mine != theirs && !differences.explains(b, m, mine) {
			t.Errorf("%s: oncegate accepts: %v, and the SDK says otherwise", m, mine)
		}
	}
	differences.done(t)
}

// accepted holds oncegate against what an SDK made.
func accepted(t *testing.T, b *bench, d *delivery.Delivery) {
	t.Helper()
	if err := b.ours(d); err != nil {
		t.Errorf("oncegate refuses what the SDK made: %v", err)
	}
	for _, m := range mutations(b, d) {
		if m.place == "body" && b.ours(m.delivery) == nil && b.KeySigned && b.key(m.delivery) != b.key(d) {
			t.Errorf("%s: accepted under another key", m)
		}
	}
}
