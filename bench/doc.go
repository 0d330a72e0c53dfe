// Package bench compares, in one run on one machine, what an app answers by
// itself, through a bare httputil.ReverseProxy, through nginx, and through
// oncegate: passing through, fresh and replaying, per store.
//
//	make bench
//
// prints a table in Markdown. Cells are measured in turn, round after round, so
// that what else the machine does meets all of them alike; what counts are the
// ratios, not the figures. A short form, which only sees that every cell works,
// runs with the tests.
//
//	make bench-scale
//
// fills each store with ten million done claims (SCALE=300000: fewer) and says how
// much room they take, what a claim then takes against an empty store, what a purge
// costs those who claim meanwhile, and how much a store grows by a day's churn.
//
//	make storm
//
// sends a million duplicates of one event, and then a fifth as many that share no row
// of evidence, while that can't be written: memory and store stay as they are, and
// what was not written is counted.
package bench
