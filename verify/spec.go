package verify

import "time"

// A Spec is one signature scheme, as a route or a preset writes it. Exactly
// one of the fields in the first block says which scheme it is; the others
// say how that scheme is dressed. A route's Specs must all hold.
type Spec struct {
	// None says that deliveries are not verified at all. It stands alone, and
	// only where somebody wrote it out.
	None bool `yaml:"none"`
	// HMAC is a keyed hash over the signed text: md5, sha1, sha256, sha384 or
	// sha512.
	HMAC string `yaml:"hmac"`
	// Hash is a plain hash over a signed text that holds {secret}: md5, sha1,
	// sha256 or sha512.
	Hash string `yaml:"hash"`
	// Ed25519, ECDSA (P-256; its hash) and RSA (PKCS #1 v1.5; its hash) check
	// with a public key: the route's secret, or one that Keys fetches.
	Ed25519 bool   `yaml:"ed25519"`
	ECDSA   string `yaml:"ecdsa"`
	RSA     string `yaml:"rsa"`
	// JWT is a signed token in Header, of this algorithm: HS256, RS256 or
	// ES256. Claims says what it has to say.
	JWT string `yaml:"jwt"`
	// Token is a shared secret that arrives as it is. Nothing is signed.
	Token bool `yaml:"token"`
	// Basic is HTTP Basic authentication; the secret is "user:password".
	Basic bool `yaml:"basic"`
	// HTTP is the URL of a verifier of one's own.
	HTTP string `yaml:"http"`
	// IPs are the addresses or prefixes deliveries may come from. An addition:
	// it cannot be the only scheme of a route.
	IPs []string `yaml:"ips"`
	// Any holds alternatives, one of which must hold.
	Any []Spec `yaml:"any"`

	// Header names the header lines that carry signatures. A trailing *
	// stands for any ending.
	Header []string `yaml:"header"`
	// Absent names headers that may not stand beside the signature: those of
	// another alternative, from which the event key could be read unsigned.
	Absent []string `yaml:"absent"`
	// JSON, Form and Query name a place in the body or the target that carries
	// the signature instead: an RFC 6901 pointer, a form field, a parameter.
	JSON  string `yaml:"json"`
	Form  string `yaml:"form"`
	Query string `yaml:"query"`
	// Format is what a signature looks like, such as "sha256={hex}". Without
	// it the whole text is {hex}.
	Format string `yaml:"format"`
	// List separates the items of a list of signatures. Format is then split
	// by it too, and each item is held against each of its parts; an item that
	// fits none is ignored.
	List string `yaml:"list"`
	// Signed is the template of the signed text; without it {body}.
	Signed string `yaml:"signed"`
	// Lower signs the text in lower case.
	Lower bool `yaml:"lower"`
	// Fields says what {fields} in Signed stands for.
	Fields *Fields `yaml:"fields"`
	// Within names the form field that holds the JSON document.
	Within string `yaml:"within"`
	// Each points at a JSON array whose items are each signed; JSON and {json:}
	// are then read from the item.
	Each string `yaml:"each"`
	// BodyHash is a hash of the body that the signed text only refers to.
	BodyHash *BodyHash `yaml:"body_hash"`
	// Time is the moment of signing, where the scheme carries one.
	Time *Time `yaml:"time"`
	// Port says that the URL's port is now written and now not: "either".
	Port string `yaml:"port"`
	// Decode lists the percent-escapes that the sender decodes in the URL
	// before it signs, such as "%3A %2F".
	Decode string `yaml:"decode"`
	// Encoding is how a secret is written: text (default), hex, base64, whsec,
	// or sha1 (the key is the SHA-1 of the text). A public key is PEM; or DER
	// or raw bytes in hex or base64; or whpk.
	Encoding string `yaml:"encoding"`
	// Secrets are this scheme's own, in place of the route's.
	Secrets []string `yaml:"secrets"`
	// Keys fetches public keys from pinned hosts.
	Keys *Keys `yaml:"keys"`
	// Claims are what a JWT must say.
	Claims *Claims `yaml:"claims"`
}

// Time says where the moment of signing is found and how it is judged.
type Time struct {
	// Header, JSON, Form or Query name its place; without one it is {time} in
	// the signature.
	Header string `yaml:"header"`
	JSON   string `yaml:"json"`
	Form   string `yaml:"form"`
	Query  string `yaml:"query"`
	// Unit is s (default), ms or rfc3339.
	Unit string `yaml:"unit"`
	// Tolerance bounds how far it may lie before or after the arrival of the
	// delivery. Left out it is 5m; 0 means that the time isn't judged.
	Tolerance *time.Duration `yaml:"tolerance"`
}

// Fields turns a form's fields into signed text.
type Fields struct {
	// Order is received or sorted (by name, byte by byte).
	Order string `yaml:"order"`
	// Pair stands between a name and its value, Join between two fields.
	Pair string `yaml:"pair"`
	Join string `yaml:"join"`
	// Except are names left out; Until is the name at which reading stops.
	Except []string `yaml:"except"`
	Until  string   `yaml:"until"`
	// Encode writes values anew: "form" as PHP's urlencode does.
	Encode string `yaml:"encode"`
}

// BodyHash says where a hash of the body is found.
type BodyHash struct {
	Query string `yaml:"query"`
	Hash  string `yaml:"hash"`
}

// Keys says where public keys are fetched from.
type Keys struct {
	// Certificate names the place of the URL of an X.509 certificate, such as
	// "header:Paypal-Cert-Url" or "json:/SigningCertURL".
	Certificate string `yaml:"certificate"`
	// URL is where a JSON Web Key Set stands; or, with Post, an API that is sent
	// these members as JSON and answers with the one JWK as its member "key".
	// A value may hold {param:name}, {secret} and {kid}.
	URL  string            `yaml:"url"`
	Post map[string]string `yaml:"post"`
	// Hosts are the only hosts that keys are fetched from; a * stands for one
	// label.
	Hosts []string `yaml:"hosts"`
	// Suffix is what the URL's path must end with.
	Suffix string `yaml:"suffix"`
}

// Claims are what a JWT must say. Values may hold {param:name}.
type Claims struct {
	// Issuer and Audience are values of iss and aud, one of which must match.
	Issuer   []string `yaml:"issuer"`
	Audience []string `yaml:"audience"`
	// Equals are other claims, of text or boolean.
	Equals map[string]string `yaml:"equals"`
	// BodySHA256 is the claim that holds the hex SHA-256 of the body.
	BodySHA256 string `yaml:"body_sha256"`
	// MaxAge bounds how far iat may lie before or after the arrival. Without it
	// exp is needed; where neither bounds the token, say Timeless.
	MaxAge   time.Duration `yaml:"max_age"`
	Timeless bool          `yaml:"timeless"`
}
