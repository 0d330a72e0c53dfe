package provider

import (
	"slices"
	"strings"
	"testing"

	"oncegate/keyextract"
	"oncegate/verify"
)

// applied are the failures from the field that are tried on every preset. not
// says why one has nothing to try.
var applied = []struct {
	id   string
	not  func(*bench) string
	test func(*bench, *testing.T)
	// least is on how many presets it has to be tried, so that a reason doesn't come
	// to cover all of them.
	least int
}{
	{"B01 nothing there is no key", withoutKey, (*bench).testNothing, 55},
	{"B03 large numbers", withoutJSON, (*bench).testNumbers, 40},
	{"B04 a value that stands twice", withoutKey, (*bench).testTwice, 55},
	{"B08 another ID beside the signature", unsigned, (*bench).testOtherID, 60},
	{"B10 B11 each part of the key counts", withoutKey, (*bench).testParts, 55},
	{"B13 batches", noBatch, (*bench).testBatch, 8},
	{"B14 forms", noForm, (*bench).testForm, 6},
	{"B17 bytes beside the JSON", notWhole, (*bench).testBytes, 40},
	{"B19 several signatures", noSignatureHeader, (*bench).testSeveral, 40},
	{"B20 a time that is none", noTime, (*bench).testNoTime, 15},
	{"duplicates, retries and resends", withoutKey, (*bench).testAgain, 55},
}

// TestApplied tries each of them on each preset.
func TestApplied(t *testing.T) {
	var benches []*bench
	for _, p := range all(t) {
		benches = append(benches, onBench(t, p))
	}
	for _, c := range applied {
		t.Run(c.id, func(t *testing.T) {
			tried := 0
			for _, b := range benches {
				if c.not(b) != "" {
					continue
				}
				tried++
				t.Run(b.Name, func(t *testing.T) { c.test(b, t) })
			}
			if tried < c.least {
				t.Errorf("tried on %d presets, want %d at least", tried, c.least)
			}
		})
	}
}

func withoutKey(b *bench) string {
	switch {
	case len(b.Key) == 0:
		return "reads no key"
	case slices.ContainsFunc(b.Key, func(p keyextract.Part) bool { return p.Digest != "" }):
		return "its key is a digest, which is never absent and has no parts"
	}
	return ""
}

func withoutJSON(b *bench) string {
	if why := withoutKey(b); why != "" {
		return why
	}
	for _, p := range b.Key {
		if p.JSON != "" || slices.ContainsFunc(p.First, func(one keyextract.Part) bool { return one.JSON != "" }) {
			return ""
		}
	}
	return "no part of its key is JSON, so none is a number"
}

func unsigned(b *bench) string {
	switch {
	case withoutKey(b) != "":
		return withoutKey(b)
	case b.verifier == nil:
		return "nothing is signed, and it is observed or says who calls"
	}
	return ""
}

func noBatch(b *bench) string {
	switch {
	case b.Each == "":
		return "one event a delivery"
	case strings.HasPrefix(b.Each, "xml:"):
		return "XML, which package keyextract's scripts take apart"
	}
	return ""
}

func noForm(b *bench) string {
	if why := withoutKey(b); why != "" {
		return why
	}
	if !strings.Contains(b.Sample.Header["Content-Type"], "urlencoded") {
		return "its sample is no form"
	}
	return ""
}

func notWhole(b *bench) string {
	if b.verifier == nil || !whole(b.Verify) {
		return "the body isn't signed as a whole"
	}
	return ""
}

func noSignatureHeader(b *bench) string {
	s := b.scheme()
	switch {
	case b.verifier == nil || b.secret == "" || b.secret == "api-secret":
		return "no secret of the route's signs"
	case len(s.Header) == 0 || s.JWT != "" || s.Token || s.Basic:
		return "one value says who sends, or the signature stands in the body, once"
	case s.Absent != nil && s.List == "":
		return "only one signature can stand there"
	}
	return ""
}

func noTime(b *bench) string {
	if b.verifier == nil || b.scheme().Time == nil {
		return "no time is signed"
	}
	return ""
}

// scheme is the first scheme, or the first of its alternatives.
func (b *bench) scheme() verify.Spec {
	if s := b.Verify[0]; len(s.Any) == 0 {
		return s
	}
	return b.Verify[0].Any[0]
}
