// Package witness asks whether an event has had its effect.
//
// When the outcome of an attempt is unknown, there is often somebody who knows:
// the table into which the app writes the payment, or an address that tells. A
// list of rules says whom to ask, and with which values of the delivery:
//
//	witness:
//	  - when: {json: /type, in: [invoice.paid]}
//	    with: {invoice: {json: /data/object/id}}
//	    sql: SELECT 1 FROM payments WHERE stripe_invoice = :invoice
//	  - when: {json: /type, in: [refund.created]}
//	    with: {refund: {json: /data/object/id}}
//	    http: http://127.0.0.1:8000/effects/{refund}
//	  - otherwise: retry
//
// The first rule whose condition holds is asked; a rule without a condition
// always holds. Where none holds, the answer is [Hold]: nobody guesses.
//
// # SQL
//
// A row means yes, none means no. The statement runs in a read-only transaction;
// its values are bound, never put into its text; a time limit holds. A text is
// bound as text, and a JSON number that fits 64 bits as a number, so compare
// with a column of the same kind: MySQL finds that the text 'pi_1' equals the
// number 0. A row whose first column is 0, false or NULL is neither yes nor no:
// such is the answer of SELECT count(*) where there is nothing, and it is an
// error rather than a wrong yes.
//
// A replica may lag, so its "no" is worth nothing and its "yes" is not asked
// for: a PostgreSQL server in recovery and a MySQL or MariaDB server that is
// read-only are refused. Where reads may go to a replica that is neither
// (logical replication, a proxy that splits reads), use an address that does not.
//
// # HTTP
//
// A GET: 2xx means yes, 404 means no, and all else that it is not known.
// Redirects are not followed. Values are escaped for the place where they stand,
// in the path or the query; a value that would be a dot segment is refused. A
// wrong address answers 404 to everything: try it with an event that is known to
// have had its effect.
//
// # What a "no" is worth
//
// A "no" says that the effect can't be seen now. That the app can't be working on
// it any more, and that nobody else has begun, is for the caller to see to.
package witness
