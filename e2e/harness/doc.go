// Package harness puts the parts of an end-to-end test together: a shop that
// is a real Laravel app behind nginx and PHP-FPM, oncegate's built binary in
// front of it, and a sender whose deliveries Stripe's own library has signed.
//
//	shop := harness.NewShop(t, harness.ShopOptions{})
//	gate := binary.Serve(t, harness.Config{Upstream: shop.URL, Routes: harness.StripeRoute})
//	answer := harness.Send(t.Context(), gate.URL, harness.NewEvent(1).Delivery())
//
// What the shop did is never asked of oncegate: the tests count the rows in
// the shop's own database.
package harness
