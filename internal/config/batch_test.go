package config

import (
	"strings"
	"testing"
)

func TestBatch(t *testing.T) {
	const route = "upstream: http://127.0.0.1:8000\nstate_dir: /srv\nroutes:\n  shop:\n    path: /hook\n    secrets: s3cret\n    verify: {hmac: sha256, header: X-Sig}\n    "
	for _, c := range []struct {
		name, more string
		split      bool
		fault      string
	}{
		{"whole without a word", "key: {json: /id}\n    each: /events", false, ""},
		{"whole", "key: {json: /id}\n    each: /events\n    batch: whole", false, ""},
		{"split", "key: {json: /id}\n    each: /events\n    batch: split", true, ""},
		{"another word", "key: {json: /id}\n    each: /events\n    batch: half", false, "batch: must be whole or split"},
		{"no batch", "key: {json: /id}\n    batch: split", false, "batch: can't be split: deliveries are no batches"},
		{"several arrays", "key: {json: /id}\n    each: /entry/*/changes\n    batch: split", false, "batch: can't be split: each goes through several arrays"},
		{"the body's digest in the key", "key: [{json: /id}, {digest: body}]\n    each: /events\n    batch: split", false, "batch: can't be split: the body's digest"},
		{"the body's digest by on_mismatch", "key: {json: /id}\n    each: /events\n    batch: split\n    on_mismatch: run", false, "batch: can't be split: the body's digest"},
		{"B13 mismatch run", "key: {json: /id}\n    each: /events\n    on_mismatch: run", false, "on_mismatch: run can't stand beside each"},
		{"mismatch refused", "key: {json: /id}\n    each: /events\n    on_mismatch: refuse", false, "on_mismatch: refuse can't stand beside each"},
		{"a witness", "key: {json: /id}\n    each: /events\n    on_unknown: witness\n    witness: {with: {e: {json: /events/0/id}}, http: \"http://127.0.0.1:1/{e}\"}", false, ""},
		{"a witness, and several arrays", "key: {json: /id}\n    each: /entry/*/changes\n    on_unknown: witness\n    witness: {with: {e: {json: /entry/0/changes/0/id}}, http: \"http://127.0.0.1:1/{e}\"}", false, "on_unknown: witness can't be asked about one event of such a batch alone"},
		{"a guard", "key: {json: /id}\n    each: /events\n    guard: {digest: body}", false, "guard: can't stand beside each"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := Load(writeConfig(t, route+c.more+"\n"))
			switch {
			case c.fault == "" && err != nil:
				t.Fatal(err)
			case c.fault != "":
				if err == nil || !strings.Contains(err.Error(), "routes.shop."+c.fault) {
					t.Fatalf("got %v, want a fault: %s", err, c.fault)
				}
				return
			}
			if got := config.Routes[0].SplitBatches; got != c.split {
				t.Errorf("split: %v", got)
			}
		})
	}
}
