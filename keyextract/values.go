package keyextract

// A Kind says what a Value was in the delivery.
type Kind uint8

// What a Value can be. The zero Kind is no value at all.
const (
	Text   Kind = iota + 1 // a JSON string, or text from any other place
	Number                 // a JSON number; its Text is the literal token
	Bool                   // a JSON boolean; its Text is "true" or "false"

	// container is an object, an array, an element that holds elements or a
	// field that PHP makes an array: present, but no value.
	container
)

// A Value is what stands at one place of a delivery.
type Value struct {
	Kind Kind
	Text string
}

// Values are what Extract read.
type Values struct {
	// Keys are the event keys: visible ASCII, one per different item, in order
	// of first occurrence; exactly one where the delivery is no batch.
	Keys []string
	// Guard is the second key, or "" where none is configured or all of its
	// parts are optional and absent.
	Guard string
	// Tags are sorted "name=value" strings; those that had no value are left
	// out.
	Tags []string
	// Named are the named values; those that could not be read are left out.
	Named map[string]Value
}
