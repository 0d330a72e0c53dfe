package keyextract_test

import (
	"fmt"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

func Example() {
	rules, err := keyextract.Compile(keyextract.Spec{
		Key:  []keyextract.Part{{JSON: "/account", Optional: true}, {JSON: "/id"}},
		Tags: map[string]keyextract.Part{"order": {JSON: "/data/object/metadata/order_id"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{
		`{"id": "evt_1", "data": {"object": {"metadata": {"order_id": 10042}}}}`,
		`{"id": "evt_1", "account": "acct_1"}`,
		`{"id": 17}`,
		`{"id": null}`,
		`{"id": "evt_1", "\u0069d": "evt_2"}`,
	} {
		values, err := rules.Extract(keyextract.Parse(&delivery.Delivery{Body: []byte(body)}))
		fmt.Println(values.Keys, values.Tags, err)
	}
	// Output:
	// [evt_1] [order=10042] <nil>
	// [acct_1/evt_1] [] <nil>
	// [#17] [] <nil>
	// [] [] json /id: no usable value: absent, null or blank
	// [] [] json /id: malformed: an object on the way has the member "id" twice
}
