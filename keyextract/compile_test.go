package keyextract_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

func TestCompileReportsAllFaults(t *testing.T) {
	many := map[string]keyextract.Part{}
	for i := range 17 {
		many[fmt.Sprint("t", i)] = keyextract.Part{Const: "x"}
	}
	type parts = []keyextract.Part
	type byName = map[string]keyextract.Part
	for _, c := range []struct {
		name string
		spec keyextract.Spec
		want []string // the fields at fault, in order
	}{
		{"nothing", keyextract.Spec{}, []string{"key"}},
		{"B01 the same for every event", keyextract.Spec{
			Key:   parts{{Const: "a"}, {Method: true}, {Path: "^(.*)$"}},
			Guard: parts{{First: parts{{JSON: "/id"}, {Const: "none"}}}},
		}, []string{"key", "guard"}},
		{"no place", keyextract.Spec{Key: parts{{}}}, []string{"key[0]"}},
		{"two places", keyextract.Spec{Key: parts{{JSON: "/a", Header: "X"}}}, []string{"key[0]"}},
		{"form with header", keyextract.Spec{Key: parts{{Form: "a", Header: "X"}}}, []string{"key[0]"}},
		{"each kind", keyextract.Spec{Key: parts{
			{JSON: "id"}, {JSON: "/a~2"}, {JSON: "/\xff"}, {JSON: strings.Repeat("/a", 33)},
			{Header: "X Y"}, {Query: "[a]"}, {Form: " "}, {Form: "p", JSON: "x"}, {XML: "a/b"}, {XML: "/s:a"}, {XML: "/a//b"},
			{Path: "("}, {Path: "^/a$"}, {Path: "(a)(b)"}, {Const: " \t"}, {Digest: "item"}, {First: parts{{JSON: "/a"}, {}}},
		}}, []string{"key[0].json", "key[1].json", "key[2].json", "key[3].json", "key[4].header", "key[5].query",
			"key[6].form", "key[7].json", "key[8].xml", "key[9].xml", "key[10].xml", "key[11].path", "key[12].path",
			"key[13].path", "key[14].const", "key[15].digest", "key[16].first[1]"}},
		{"refinements out of place", keyextract.Spec{
			Key:  parts{{JSON: "/a", Root: true}, {JSON: "/a", As: "sf-string"}, {JSON: "/a", As: "int"}, {First: parts{{JSON: "/a", Optional: true}}}},
			Tags: byName{"a": {JSON: "/a", Optional: true}},
		}, []string{"key[0].root", "key[1].as", "key[2].as", "key[3].first[0].optional", "tags.a.optional"}},
		{"batch", keyextract.Spec{Each: "items", Key: parts{{Header: "X-Id"}, {JSON: "/a", Root: true}}}, []string{"each", "key"}},
		{"XML batch", keyextract.Spec{Each: "xml:items", Key: parts{{JSON: "/a"}}}, []string{"each", "key[0].json"}},
		{"batch without a key", keyextract.Spec{Each: "/items", Tags: byName{"a": {JSON: "/a"}}}, []string{"each"}},
		{"guard without a key", keyextract.Spec{Guard: parts{{Digest: "body"}}}, []string{"guard", "key"}},
		{"tags", keyextract.Spec{Key: parts{{JSON: "/a"}}, Tags: many}, []string{"tags"}},
		{"names", keyextract.Spec{Tags: byName{"a=b": {JSON: "/a"}}, Named: byName{"": {JSON: "x"}}}, []string{"tags.a=b", "named.", "named..json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, err := keyextract.Compile(c.spec)
			var faults keyextract.Faults
			if rules != nil || !errors.As(err, &faults) {
				t.Fatalf("got %v, %v", rules, err)
			}
			var got []string
			for _, f := range faults {
				got = append(got, f.Field)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("faults at %q, want %q\n%v", got, c.want, err)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	yes, no, one := true, false, "1"
	text := "url_verification"
	isTrue := "true"
	type cond = keyextract.Condition
	for _, c := range []struct {
		name string
		cond cond
		body string
		want string
	}{
		{"in", cond{JSON: "/type", In: []string{"a", "b"}}, `{"type":"b"}`, "true"},
		{"not in", cond{JSON: "/type", In: []string{"a", "b"}}, `{"type":"c"}`, "false"},
		{"in, absent", cond{JSON: "/type", In: []string{"a", ""}}, `{}`, "false"},
		{"in, blank", cond{JSON: "/type", In: []string{""}}, `{"type":""}`, "false"},
		{"in, container", cond{JSON: "/type", In: []string{""}}, `{"type":{}}`, "false"},
		{"equals number", cond{JSON: "/type", Equals: &one}, `{"type":1}`, "true"},
		{"equals text", cond{JSON: "/type", Equals: &one}, `{"type":"1"}`, "true"},
		{"equals boolean", cond{JSON: "/test", Equals: &isTrue}, `{"test":true}`, "true"},
		{"equals case", cond{JSON: "/type", Equals: &text}, `{"type":"URL_verification"}`, "false"},
		{"present", cond{JSON: "/a", Present: &yes}, `{"a":0}`, "true"},
		{"present container", cond{JSON: "/a", Present: &yes}, `{"a":[]}`, "true"},
		{"present null", cond{JSON: "/a", Present: &yes}, `{"a":null}`, "false"},
		{"absent", cond{JSON: "/a", Present: &no}, `{}`, "true"},
		{"absent, empty body", cond{JSON: "/a", Present: &no}, ``, "true"},
		{"absent, but there", cond{JSON: "/a", Present: &no}, `{"a":"x"}`, "false"},
		{"present and in", cond{Query: "q", Present: &yes, In: []string{"v"}}, `{}`, "true"},
		{"B75 a handshake", cond{All: []cond{{JSON: "/type", Equals: &text}, {JSON: "/challenge", Present: &yes}, {JSON: "/event_id", Present: &no}}},
			`{"type":"url_verification","challenge":"c1"}`, "true"},
		{"B75 not quite", cond{All: []cond{{JSON: "/type", Equals: &text}, {JSON: "/challenge", Present: &yes}, {JSON: "/event_id", Present: &no}}},
			`{"type":"url_verification","challenge":"c1","event_id":"Ev1"}`, "false"},
		{"B04 twice", cond{JSON: "/type", Equals: &text}, `{"type":"url_verification","type":"event"}`, "malformed"},
		{"B53 cut off", cond{JSON: "/type", Present: &no}, `{"type":`, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := keyextract.CompileCondition(c.cond)
			if err != nil {
				t.Fatal(err)
			}
			ok, err := m.Holds(keyextract.Parse(&delivery.Delivery{Target: "/?q=v", Body: []byte(c.body)}))
			got := fmt.Sprint(ok)
			if err != nil {
				got = outcome(err)
			}
			if got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestCompileConditionReportsAllFaults(t *testing.T) {
	no, x := false, "x"
	type cond = keyextract.Condition
	deep := cond{JSON: "/a", Equals: &x}
	for range 10 {
		deep = cond{All: []cond{deep}}
	}
	for _, c := range []struct {
		name string
		cond cond
		want string
	}{
		{"nothing", cond{}, "in: say what is asked of the value: in, equals or present\n" +
			"say where the value stands: one of json, header, query, form, xml, path, method, const, digest, first"},
		{"contradiction", cond{JSON: "/a", Present: &no, Equals: &x}, "present: what is not present can't equal anything"},
		{"all beside a place", cond{JSON: "/a", All: []cond{{JSON: "/a", Equals: &x}}}, "all: stands alone, without a place"},
		{"inside all", cond{All: []cond{{JSON: "a", Equals: &x}}}, `all[0].json: a JSON pointer begins with "/", as in /data/id ("#" is the whole document)`},
		{"too deep", deep, strings.Repeat("all[0].", 8) + "all: nested too deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := keyextract.CompileCondition(c.cond); err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}
