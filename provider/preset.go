package provider

import (
	"time"

	"oncegate/internal/strictyaml"
	"oncegate/keyextract"
	"oncegate/verify"
)

// A Preset is what one provider's file says. Presets are shared: they are only
// read.
type Preset struct {
	// Name is what a route says under provider; the file is named after it.
	Name string `yaml:"name"`
	// Title is the provider's own name for the product.
	Title string `yaml:"title"`
	// Docs is the page where the provider describes its webhooks.
	Docs string `yaml:"docs"`
	// Payments says that it takes payments or moves money, so that an event which
	// runs twice may cost somebody money.
	Payments bool `yaml:"payments"`
	// Confidence is high, medium or low: how sure the facts here are. Sources
	// says where they come from, Unconfirmed what is still open.
	Confidence  string   `yaml:"confidence"`
	Sources     []string `yaml:"sources"`
	Unconfirmed []string `yaml:"unconfirmed"`
	// Oracle says what proved the signature scheme: the module or package of
	// an SDK, or where a vector was published. Empty: nothing but our own
	// signer.
	Oracle string `yaml:"oracle"`
	// Mode is enforce, or observe where there is no safe key or nothing to
	// verify. ObserveWhy says which.
	Mode       string `yaml:"mode"`
	ObserveWhy string `yaml:"observe_why"`
	// Params are what a route must or may say beside its secrets.
	Params map[string]Param `yaml:"params"`
	// Methods are the methods that carry events; POST where none is written.
	Methods []string `yaml:"methods"`

	// Verify lists the signature schemes, all of which must hold.
	Verify []verify.Spec `yaml:"verify"`

	// Key, Each, Guard and Tags are the key rule; see package keyextract.
	Key   []keyextract.Part          `yaml:"key"`
	Each  string                     `yaml:"each"`
	Guard []keyextract.Part          `yaml:"guard"`
	Tags  map[string]keyextract.Part `yaml:"tags"`
	// KeySigned says that the key lies inside the signed bytes.
	KeySigned bool `yaml:"key_signed"`
	// StableRetries and StableResend say whether the key stays the same over
	// automatic retries and over resends by hand: yes, no, unknown, or none
	// where there are no retries or resends.
	StableRetries string `yaml:"stable_retries"`
	StableResend  string `yaml:"stable_resend"`
	// CallerRequired says that the route has to name the caller.
	CallerRequired bool `yaml:"caller_required"`
	// DigestTarget says that the payload's digest takes in method and target.
	DigestTarget bool `yaml:"digest_target"`

	// Handshakes are requests of the provider's that are no events.
	Handshakes []Handshake `yaml:"handshakes"`
	// Patience is how long the provider waits for an answer.
	Patience time.Duration `yaml:"patience"`
	Retries  Retries       `yaml:"retries"`
	// Success lists what the provider takes as accepted: "2xx", "200".
	Success []string `yaml:"success"`
	// Statuses maps result words to the status that this provider understands.
	Statuses map[string]int `yaml:"statuses"`
	// The route's policies, where the built-in ones don't suit the provider.
	OnMissingKey  string          `yaml:"on_missing_key"`
	OnMismatch    string          `yaml:"on_mismatch"`
	OnStoreOutage string          `yaml:"on_store_outage"`
	OnOverload    string          `yaml:"on_overload"`
	OnUnknown     string          `yaml:"on_unknown"`
	MaxBody       strictyaml.Size `yaml:"max_body"`
	// Differs names what changes between two deliveries of one event.
	Differs []string `yaml:"differs"`
	// Answer says what the provider reads in the app's answer.
	Answer string `yaml:"answer"`
	// Bare: refusals have no body, since the provider takes none in any answer.
	Bare bool `yaml:"bare"`
	// Notes are the traps.
	Notes []string `yaml:"notes"`
	// Sample is one delivery, not yet signed.
	Sample Sample `yaml:"sample"`
}

// A Param is a value that the provider's scheme needs from the route.
type Param struct {
	// About says in one line what it is and where the provider shows it.
	About string `yaml:"about"`
	// Type is text, url, email or uuid.
	Type string `yaml:"type"`
	// Pattern is a regular expression that the whole value must match.
	Pattern  string `yaml:"pattern"`
	Required bool   `yaml:"required"`
	Default  string `yaml:"default"`
	Example  string `yaml:"example"`
}

// Retries says what the provider does when it gets no success.
type Retries struct {
	// Never: a failed delivery is not sent again.
	Never bool `yaml:"never"`
	// For is how long after the first try the last one comes.
	For time.Duration `yaml:"for"`
	// Schedule is the provider's, in its own words.
	Schedule string `yaml:"schedule"`
	// Final are statuses after which it gives up: "4xx", "410".
	Final []string `yaml:"final"`
}

// A Handshake is a request that is no event: it reaches the app every time and
// is never claimed.
type Handshake struct {
	// What it is called in logs and evidence.
	Name string `yaml:"name"`
	// The methods it comes with. Without them the route's own.
	Methods []string `yaml:"methods"`
	// It carries no signature, and is let through for exactly this shape.
	Unsigned bool `yaml:"unsigned"`
	// What it looks like.
	When keyextract.Condition `yaml:"when"`
}

// A Sample is one delivery of the provider's, for send, demo and tests.
type Sample struct {
	Method string            `yaml:"method"`
	Target string            `yaml:"target"`
	Header map[string]string `yaml:"header"`
	Body   string            `yaml:"body"`
	// Retry is the same event as the provider sends it again, where the body
	// changes; Key is the event key of both.
	Retry string `yaml:"retry"`
	Key   string `yaml:"key"`
	// Rename is the text in it that makes it this event and no other, where that
	// is not the last part of the key. RenameBase64 says that it stands in base64,
	// at a place and of a length that three bytes divide.
	Rename       string `yaml:"rename"`
	RenameBase64 bool   `yaml:"rename_base64"`
}
