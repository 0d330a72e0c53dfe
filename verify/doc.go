// Package verify checks that a delivery comes from who it says, on the bytes
// that arrived.
//
// A route, or a preset, says in a list of [Spec] how its provider signs;
// [Compile] makes a [Verifier] of it, and every scheme of the list must hold.
//
//	v, err := verify.Compile([]verify.Spec{{
//		HMAC:   "sha256",
//		Header: []string{"Stripe-Signature"},
//		List:   ",",
//		Format: "t={time},v1={hex}",
//		Signed: "{time}.{body}",
//		Time:   &verify.Time{Unit: "s"},
//	}}, verify.Options{Secrets: secrets})
//	...
//	if err := v.Plausible(header); err != nil { ... }   // before the body is read
//	if err := v.Verify(ctx, delivery); err != nil { ... }
//
// # Signatures
//
// Format says what a signature looks like: literal text around one of {hex},
// {HEX}, {base64} and {base64url} ({HEX} differs only when oncegate signs; hex
// is read in either case, base64 only as an encoder writes it), with {time} for
// the time of signing and {any} for what doesn't matter. With List, both the
// format and what arrives are split by the separator, and items that fit no
// part of the format are ignored. A delivery is genuine where any of its
// signatures fits any of the secrets. A list of more than 64 items, and header
// lines of more than 8 KiB, are refused.
//
// # The signed text
//
// Signed is a template. {body} is the body as it arrived, {method}, {target}
// and {path} come from the request line, {url} is the public URL, {header:X},
// {query:X}, {form:X} and {json:/x} are single values that may stand once only
// (names that are one to PHP count as the same),
// {time} is the time of signing as it was written, {secret} the secret (hash
// only; {secret_form} is the same urlencoded), {param:X} a parameter of the route's, {crc32} the body's CRC-32 in
// decimal, {fields} a form's fields as Fields says, {listed:X} the headers that
// header X lists, {const:X} is X. A value that isn't there refuses the
// delivery; {json:/x?} is empty then, and a group in [brackets] is left out.
//
// Values are read from no compressed body: the key would be read from another
// text than they.
//
// # Time
//
// A time of signing is decimal digits and nothing else, or RFC 3339. It is held
// against the arrival of the delivery, not against now, to both sides, once the
// signature fits.
//
// # Keys
//
// With a public key the secret is that key. A private key in PEM may stand in
// its place, for a demonstration or a test: then oncegate can sign too. Keys that
// a delivery only names are fetched over HTTPS from the hosts that the Spec
// pins, without following redirects and from public addresses alone; they are
// kept for hours, and what can't be had makes a delivery [Unavailable], never
// genuine.
//
// # Failing closed
//
// A secret that is missing, blank or can't be decoded stops Compile; the fault
// names the secret's number and never its text. A secret that becomes so later
// refuses deliveries as [Unavailable]. `none: true` is the only way not to
// verify, and it stands alone.
//
// # What is not proven
//
// A token, Basic or an address says who sends and nothing of what is sent. A
// scheme that signs only some values leaves the others to whoever holds a
// captured delivery. The presets say where that is so.
package verify
