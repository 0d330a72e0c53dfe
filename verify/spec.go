package verify

import "time"

// A Spec is one signature scheme, as a route or a preset writes it. Exactly
// one of the fields up to Any says which scheme it is; the others say how that
// scheme is dressed. A route's Specs must all hold.
type Spec struct {
	// Says that deliveries are not verified at all. It stands alone.
	None bool `yaml:"none"`
	// A keyed hash over the signed text: md5, sha1, sha256, sha384 or sha512.
	HMAC string `yaml:"hmac"`
	// A plain hash over a signed text that holds {secret}: the same hashes.
	Hash string `yaml:"hash"`
	// An Ed25519 signature over the signed text. The secret is the public key.
	Ed25519 bool `yaml:"ed25519"`
	// An ECDSA signature (ASN.1) over this hash of the signed text: sha256 or sha512. The secret is the public key.
	ECDSA string `yaml:"ecdsa"`
	// An RSA signature (PKCS #1 v1.5) over this hash of the signed text: sha1, sha256 or sha512. The secret is the public key, unless keys fetches it.
	RSA string `yaml:"rsa"`
	// A JSON Web Token in header, of this algorithm: HS256, RS256 or ES256. What it has to say stands under claims.
	JWT string `yaml:"jwt"`
	// A shared secret that arrives as it is. Nothing is signed.
	Token bool `yaml:"token"`
	// HTTP Basic authentication; the secret is "user:password". Nothing is signed.
	Basic bool `yaml:"basic"`
	// The URL of a verifier of one's own. It is sent the delivery's headers and body in a POST, with Oncegate-Method, Oncegate-Target and Oncegate-Host; 2xx means genuine, 4xx forged, anything else that it can't be told now.
	HTTP string `yaml:"http"`
	// Addresses or prefixes that deliveries may come from. An addition: it can't be a route's only scheme.
	IPs []string `yaml:"ips"`
	// Alternatives, one of which must hold.
	Any []Spec `yaml:"any"`

	// The headers that carry signatures; several lines count as one list. A trailing * stands for any ending.
	Header []string `yaml:"header"`
	// Headers that may not stand beside the signature: those of another alternative, from which the event key could be read unsigned.
	Absent []string `yaml:"absent"`
	// A pointer to the signature in the body's JSON, in place of header.
	JSON string `yaml:"json"`
	// A form field that carries the signature, in place of header.
	Form string `yaml:"form"`
	// A query parameter that carries the signature, in place of header.
	Query string `yaml:"query"`
	// What a signature looks like, such as "sha256={hex}". Without it {hex}.
	Format string `yaml:"format"`
	// Separates the items of a list of signatures. Format is split by it too, and each item is held against each of its parts; an item that fits none is ignored.
	List string `yaml:"list"`
	// The template of the signed text. Without it {body}.
	Signed string `yaml:"signed"`
	// The text is signed in lower case.
	Lower bool `yaml:"lower"`
	// What {fields} in signed stands for.
	Fields *Fields `yaml:"fields"`
	// The form field that holds the JSON document, where the body isn't one itself.
	Within string `yaml:"within"`
	// A pointer to a JSON array whose items are each signed; json and {json:/x} are then read from the item.
	Each string `yaml:"each"`
	// A hash of the body that the signed URL holds.
	BodyHash *BodyHash `yaml:"body_hash"`
	// The time of signing, where the scheme carries one.
	Time *Time `yaml:"time"`
	// What must stand at a place, such as "json:/TopicArn": "{param:topic_arn}"; of several values, separated by blanks, one.
	Equals map[string]string `yaml:"equals"`
	// Either: the signed URL bears its port now and now not.
	Port string `yaml:"port"`
	// Percent-escapes that the sender decodes in the URL before it signs, such as "%3A %2F".
	Decode string `yaml:"decode"`
	// How a secret is written: text (default), hex, base64, whsec, or sha1 (the key is the SHA-1 of the text). A public key is PEM, or DER or raw bytes in base64 (default) or hex, or whpk.
	Encoding string `yaml:"encoding"`
	// This scheme's own secrets, in place of the route's.
	Secrets []string `yaml:"secrets"`
	// Fetches public keys from pinned hosts.
	Keys *Keys `yaml:"keys"`
	// What a JWT must say.
	Claims *Claims `yaml:"claims"`
}

// Time says where the time of signing stands and how it is judged. Without a
// place it is {time} in the signature.
type Time struct {
	// The header that holds it.
	Header string `yaml:"header"`
	// A pointer to it in the body's JSON.
	JSON string `yaml:"json"`
	// The form field that holds it.
	Form string `yaml:"form"`
	// The query parameter that holds it.
	Query string `yaml:"query"`
	// The unit: s (default), ms, auto (12 digits and more are ms) or rfc3339.
	Unit string `yaml:"unit"`
	// How far it may lie before or after the arrival of the delivery. Without it 5m; 0s: it is signed, and not judged.
	Tolerance *time.Duration `yaml:"tolerance"`
}

// Fields turns a form's fields into signed text.
type Fields struct {
	// The order: received (default), or sorted by name, byte by byte.
	Order string `yaml:"order"`
	// What stands between a name and its value.
	Pair string `yaml:"pair"`
	// What stands between two fields.
	Join string `yaml:"join"`
	// Names that are left out.
	Except []string `yaml:"except"`
	// The name at which reading stops; nothing may follow it.
	Until string `yaml:"until"`
	// How values are written: decoded (default), or form, as PHP's urlencode does.
	Encode string `yaml:"encode"`
}

// BodyHash says where a hash of the body stands.
type BodyHash struct {
	// The query parameter that holds it, in hex.
	Query string `yaml:"query"`
	// The hash: md5, sha1, sha256, sha384 or sha512.
	Hash string `yaml:"hash"`
}

// Keys says where public keys are fetched from: over HTTPS, from these hosts
// alone, without following redirects.
type Keys struct {
	// The place of the URL of an X.509 certificate, such as "header:Paypal-Cert-Url" or "json:/SigningCertURL".
	Certificate string `yaml:"certificate"`
	// Where a JSON Web Key Set stands; or, with post, an API that answers with one JWK as its member "key".
	URL string `yaml:"url"`
	// What the API is sent, as members of a JSON object. A value may hold {param:name}, {secret} and {kid}.
	Post map[string]string `yaml:"post"`
	// The only hosts that keys are fetched from; a * stands for a part of one label.
	Hosts []string `yaml:"hosts"`
	// What the URL's path must begin with.
	Prefix string `yaml:"prefix"`
	// What the URL's path must end with.
	Suffix string `yaml:"suffix"`
}

// Claims are what a JWT must say. Values may hold {param:name}.
type Claims struct {
	// Values of iss, one of which must match.
	Issuer []string `yaml:"issuer"`
	// Values of aud, one of which must match. Required where the keys are public.
	Audience []string `yaml:"audience"`
	// Other claims, of text or boolean.
	Equals map[string]string `yaml:"equals"`
	// The claim that holds the hex SHA-256 of the body.
	BodySHA256 string `yaml:"body_sha256"`
	// How far iat may lie before or after the arrival. Without it exp is judged, and required.
	MaxAge time.Duration `yaml:"max_age"`
	// The token bears neither iat nor exp.
	Timeless bool `yaml:"timeless"`
}
