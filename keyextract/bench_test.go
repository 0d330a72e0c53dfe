package keyextract_test

import (
	"fmt"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// stripeBody is about 4 KiB in the shape of a Stripe event.
func stripeBody() []byte {
	var lines strings.Builder
	for i := range 6 {
		fmt.Fprintf(&lines, `%s{
          "id": "il_%024d", "object": "line_item", "amount": %d, "currency": "eur",
          "description": "1 \u00d7 Plan (at 12,00 \u20ac / month)", "discountable": true, "discounts": [],
          "livemode": false, "metadata": {"sku": "A-%d"}, "period": {"end": 1702592000, "start": 1700000000},
          "price": {"id": "price_%024d", "active": true, "nickname": null, "unit_amount": 1200, "unit_amount_decimal": "1200"},
          "proration": false, "quantity": 1, "tax_amounts": [{"amount": 0, "inclusive": false}], "type": "subscription"
        }`, strings.Repeat(",", min(i, 1)), i, 1200+i, i, i)
	}
	return fmt.Appendf(nil, `{
  "id": "evt_1NxV5y2eZvKYlo2C8wT9pQ4Z", "object": "event", "api_version": "2024-06-20", "created": 1700000000,
  "data": {"object": {"id": "in_1NxV5x2eZvKYlo2C", "object": "invoice", "amount_paid": 7200, "customer": "cus_9s6XKzkNRiz8i3",
      "lines": {"object": "list", "data": [%s], "has_more": false, "url": "/v1/invoices/in_1NxV5x2eZvKYlo2C/lines"},
      "metadata": {"order_id": "10042"}, "status": "paid"}},
  "livemode": false, "pending_webhooks": 3, "request": {"id": "req_1", "idempotency_key": "k"}, "type": "invoice.paid"
}`, lines.String())
}

var stripeSpec = keyextract.Spec{
	Key:   []keyextract.Part{{JSON: "/account", Optional: true}, {JSON: "/id"}},
	Tags:  map[string]keyextract.Part{"order": {JSON: "/data/object/metadata/order_id"}, "type": {JSON: "/type"}},
	Named: map[string]keyextract.Part{"invoice": {JSON: "/data/object/id"}},
}

// BenchmarkExtract shows that more pointers cost next to nothing: the body is
// read once.
func BenchmarkExtract(b *testing.B) {
	d := &delivery.Delivery{Body: stripeBody()}
	for _, c := range []struct {
		name string
		spec keyextract.Spec
	}{
		{"key", keyextract.Spec{Key: stripeSpec.Key}},
		{"key, tags and named", stripeSpec},
	} {
		b.Run(c.name, func(b *testing.B) {
			rules, err := keyextract.Compile(c.spec)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(d.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rules.Extract(keyextract.Parse(d)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestFewAllocations(t *testing.T) {
	d := &delivery.Delivery{Body: stripeBody()}
	rules, err := keyextract.Compile(keyextract.Spec{Key: stripeSpec.Key})
	if err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(100, func() { rules.Extract(keyextract.Parse(d)) }); got > 16 {
		t.Errorf("%v allocations for the key of a %d byte body", got, len(d.Body))
	}
}

func TestBodyIsReadOnce(t *testing.T) {
	d := &delivery.Delivery{Body: stripeBody()}
	rules, err := keyextract.Compile(stripeSpec)
	if err != nil {
		t.Fatal(err)
	}
	doc := keyextract.Parse(d)
	first, err := rules.Extract(doc)
	if err != nil {
		t.Fatal(err)
	}
	// The index makes one allocation as large as a quarter of the body; later
	// questions must not pay it again.
	again := testing.AllocsPerRun(100, func() { rules.Extract(doc) })
	whole := testing.AllocsPerRun(100, func() { rules.Extract(keyextract.Parse(d)) })
	if again >= whole-3 {
		t.Errorf("asking again costs %v allocations, asking first %v", again, whole)
	}
	if first.Keys[0] != "evt_1NxV5y2eZvKYlo2C8wT9pQ4Z" || len(first.Tags) != 2 {
		t.Errorf("got %+v", first)
	}
}
