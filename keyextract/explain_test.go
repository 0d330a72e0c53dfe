package keyextract_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

func TestExplain(t *testing.T) {
	one := keyextract.Spec{
		Key: []keyextract.Part{
			{JSON: "/account", Optional: true},
			{First: []keyextract.Part{{Header: "X-Id"}, {JSON: "/id"}}},
		},
		Guard: []keyextract.Part{{Header: "X-Guard"}},
		Tags:  map[string]keyextract.Part{"order": {JSON: "/order"}},
	}
	batch := keyextract.Spec{Each: "/events", Key: []keyextract.Part{{JSON: "/tenant", Root: true}, {JSON: "/id"}}}
	for _, c := range []struct {
		name, body string
		spec       keyextract.Spec
		want       []string
	}{
		{"where it was found", `{"id":"evt_1","order":7}`, one, []string{
			"key json /account: absent, null or blank", "key json /id = evt_1", "guard header X-Guard: absent, null or blank", "tag order json /order = 7"}},
		{"nowhere", `{"order":{}}`, one, []string{
			"key json /account: absent, null or blank", "key header X-Id or json /id: absent, null or blank", "guard header X-Guard: absent, null or blank", "tag order json /order: an object or array"}},
		{"not to be read", `{"id":1,"id":2}`, one, []string{
			"key json /account: absent, null or blank", `key json /id: malformed: an object on the way has the member "id" twice`, "guard header X-Guard: absent, null or blank", "tag order json /order: absent, null or blank"}},
		{"B13 each item", `{"tenant":"t","events":[{"id":"a"},{"id":"b"}]}`, batch, []string{
			"1 key json /tenant = t", "1 key json /id = a", "2 key json /tenant = t", "2 key json /id = b"}},
		{"B13 the first items of many", `{"tenant":"t","events":[{"id":"a"},{"id":7},{"id":"c"}]}`, batch, []string{
			"1 key json /tenant = t", "1 key json /id = a", "2 key json /tenant = t", "2 key json /id = 7"}},
		{"B13 no item", `{"events":[]}`, batch, []string{"key each /events: no usable value: no array with items"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &delivery.Delivery{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(c.body)}
			var got []string
			for _, f := range compile(t, c.spec).Explain(keyextract.Parse(d), 2).Found {
				number := ""
				if f.Item > 0 {
					number = fmt.Sprintf("%d ", f.Item)
				}
				if f.Usable() {
					got = append(got, fmt.Sprintf("%s%s %s = %s", number, f.Of, f.Place, f.Value.Text))
				} else {
					got = append(got, fmt.Sprintf("%s%s %s: %s", number, f.Of, f.Place, f.Describe()))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestExplainKeys(t *testing.T) {
	rules := compile(t, keyextract.Spec{Each: "/events", Key: []keyextract.Part{{JSON: "/tenant", Root: true}, {JSON: "/id"}}})
	d := &delivery.Delivery{Body: []byte(`{"tenant":"t","events":[{"id":"a"},{},{"id":7},{"id":"d"}]}`)}
	e := rules.Explain(keyextract.Parse(d), 3)
	if want := []string{"t/a", "", "t/#7"}; e.Items != 4 || !slices.Equal(e.Keys, want) {
		t.Errorf("%d items, keys %q, want 4 and %q", e.Items, e.Keys, want)
	}
}
