// Package keyextract reads the event key, and other named values, out of a
// delivery.
//
// A [Spec] says which values, in one small language of [Part]s. It is compiled
// once, and then asked for each delivery:
//
//	rules, err := keyextract.Compile(keyextract.Spec{
//		Key: []keyextract.Part{{JSON: "/account", Optional: true}, {JSON: "/id"}},
//	})
//	...
//	values, err := rules.Extract(keyextract.Parse(delivery)) // values.Keys[0] == "acct_1/evt_1"
//
// A [Document] is read at most once, whatever number of rules and conditions
// look at it: the body's JSON is tokenized in one pass into an index of 8 bytes
// a token, from which all pointers are answered.
//
// # No key rather than a wrong one
//
// A wrong key loses events, since two events that share a key count as one. So a
// part that yields nothing, null, a boolean, an object, an array or nothing
// but blanks (white space, control and format characters) yields no key: the
// error is [ErrMissing]. An optional part may be absent, null or blank, but no
// boolean, object or array. A delivery that two readers could read in two ways
// is [ErrMalformed].
//
// # Key text
//
// A key's text is visible ASCII, at most [MaxKeyText] bytes, and two different
// lists of values never have the same one. Parts are joined by "/". A text is
// written as it is, with "%", "/", a leading "#" and every byte that is not
// visible ASCII percent-encoded; a number is "#" and its literal token, so that
// 1, 1.0 and "1" are three keys, and no digit is ever lost. An optional part
// that is absent is dropped at the front, and "%-" further in. Texts are
// compared byte by byte: case, Unicode normalization and surrounding blanks
// count.
//
// # What the app sees
//
// The app behind is PHP, and the key must be what PHP finds at that place; where
// that is not certain, the delivery is malformed.
//
//   - JSON: a member that stands twice on the way to the value is malformed, in
//     whatever spelling (json_decode takes the last, others the first); elsewhere
//     it is tolerated. Names match exactly. Nesting over 512, anything after
//     the value, a byte order mark, or broken UTF-8 in the value or in names
//     beside it is malformed; broken UTF-8 elsewhere is tolerated. A body of
//     nothing but white space has no members: everything in it is absent.
//   - Query and form: PHP folds a.b, "a b" and a_b into one variable, and a[b]
//     is an item of a. Names are compared after that folding, and a field that
//     sets the same variable again, whole or in part, is malformed; an array
//     where one value is asked for is no value. At most 1000 fields. A form is
//     what its Content-Type says; under another type every field is absent. The
//     multipart form is read strictly, and files are no fields. A raw "#" in the
//     target, where nginx ends the query, makes the query malformed.
//   - Header: two lines of one header are malformed, and so is a name that
//     becomes the same CGI variable (X_Id beside, or instead of, X-Id).
//   - XML: an element that stands twice on the way is malformed, as are document
//     types, unknown entities, encodings other than UTF-8, more than 256 levels
//     or 100 000 elements. Text counts as it stands, blanks included.
//   - A body under Content-Encoding gzip or deflate is decoded first: to at most
//     32 MiB, and over 1 MiB to at most 100 times its size. Under another coding
//     that compresses (br, zstd) it is malformed: PHP doesn't undo those, and no
//     provider is known to send them. digest: body is of the bytes as sent.
//
// What can't be read harms only those who ask for it: a rule that reads headers
// alone does not mind what the body is.
//
// # Batches
//
// With Spec.Each the body is a batch, of JSON or of XML: JSON (or XML) parts of the
// key then point into one item (Root: into the whole body), and each different
// item gives one key. An empty batch, or one item without a key, leaves the whole delivery without a
// key; more than 10 000 items are malformed. Guard, tags and named values are
// read from the whole body.
//
// # GitHub's form
//
// A form field that holds JSON is read with Form and JSON together:
//
//	first: [{form: payload, json: /id}, {json: /id}]
//
// Put the form first: under another Content-Type it is absent, whereas a form's
// body is malformed as JSON.
// A field that is found in a body which is JSON too is malformed.
package keyextract
