package keyextract

// A Part says where one value of a delivery stands. Exactly one place is set
// (Form may stand together with JSON), and the other fields refine it.
//
// Places take a delivery as it arrived: names are matched exactly, but for the
// foldings that PHP makes (see the package comment, "What the app sees").
type Part struct {
	// JSON is an RFC 6901 pointer into the body, read as JSON whatever its
	// Content-Type says; "#" is the whole document. With Form it points into
	// the JSON text that the form field holds. In the key of a batch it points
	// into the item, unless Root is set.
	JSON string `yaml:"json"`
	// Header is the name of a header; it may stand on one line only.
	Header string `yaml:"header"`
	// Query is the name of a field in the target's query.
	Query string `yaml:"query"`
	// Form is the name of a field in the body, which is urlencoded or
	// multipart/form-data as its Content-Type says. Files are no fields.
	Form string `yaml:"form"`
	// XML is a path of element names into the body, from the root element on:
	// /Envelope/Body/Id. Prefixes are ignored. In the key of an XML batch it leads
	// on from the item, unless Root is set.
	XML string `yaml:"xml"`
	// Path is a regular expression (RE2) over the raw path, with one capturing
	// group; what the group caught is percent-decoded once. It is anchored
	// only where it says so.
	Path string `yaml:"path"`
	// Method, where true, is the request's method.
	Method bool `yaml:"method"`
	// Const is this text itself.
	Const string `yaml:"const"`
	// Digest is "body": "sha256-" and the hex SHA-256 of the body's bytes as
	// they were sent.
	Digest string `yaml:"digest"`
	// First takes the first of these parts that yields a value. One that is
	// malformed ends the search.
	First []Part `yaml:"first"`

	// Optional lets a key do without the part, where the value is absent, null
	// or blank. A boolean or a container in its place is still no key. Only for
	// the parts of a key or guard.
	Optional bool `yaml:"optional"`
	// Root makes JSON (or XML) point into the whole body although the key is one of
	// a batch's items.
	Root bool `yaml:"root"`
	// As reads the value in another way:
	//
	//	text       a JSON number counts as text: 1 is the same as "1"
	//	sf-string  a header that is a structured-field string (RFC 9651), or
	//	           the same text without quotes, as many clients send it
	//	sha256     "sha256-" and the hex SHA-256 of the value, so that the value
	//	           itself (a credential) is not stored
	As string `yaml:"as"`
}

// A Condition asks something of one place of a delivery, or of several. The
// place is written as in a Part. In, Equals and Present may stand together; all
// must hold. Text and number are compared by their text, a boolean as "true" or
// "false".
type Condition struct {
	JSON   string `yaml:"json"`
	Header string `yaml:"header"`
	Query  string `yaml:"query"`
	Form   string `yaml:"form"`
	XML    string `yaml:"xml"`
	Path   string `yaml:"path"`
	Method bool   `yaml:"method"`
	As     string `yaml:"as"`

	// In holds where the value is one of these.
	In []string `yaml:"in"`
	// Equals holds where the value is this.
	Equals *string `yaml:"equals"`
	// Present holds where there is a value (true), or none, null or blanks
	// (false). An object or array is a value here.
	Present *bool `yaml:"present"`
	// All holds where each of these holds. It stands alone.
	All []Condition `yaml:"all"`
}

// A Spec says what is read from a route's deliveries.
type Spec struct {
	// Key is the event key's parts, in order. Without it no key is read, which
	// only makes sense where Tags or Named are wanted alone.
	Key []Part `yaml:"key"`
	// Each, where set, says that the body is a batch: a JSON pointer to the
	// array whose items are the events. A "*" in it stands for every item of an
	// array on the way: /entry/*/changes. "#" is a body that is itself the array.
	// "xml:" and a path of element names says that the body is XML, and that all
	// elements at that path are the events: xml:/Envelope/Body/list/Event.
	Each string `yaml:"each"`
	// Guard is a second key, of which the whole delivery has one. Where it
	// can't be read, the delivery has no usable key either, unless its parts
	// are optional.
	Guard []Part `yaml:"guard"`
	// Tags are what an operator can search by, by name.
	Tags map[string]Part `yaml:"tags"`
	// Named are values for others, such as a witness, by name.
	Named map[string]Part `yaml:"named"`
}
