package keyextract

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the nesting that PHP's json_decode accepts unless told otherwise;
// what is nested deeper the app can't read.
const maxDepth = 512

// A jsonTree is a JSON text and an index of its tokens, made in one pass. Every
// pointer is then answered from the index, however many there are.
type jsonTree struct {
	src []byte
	// tape holds the values and member names in the order of the text, a
	// container directly before what it contains. 8 bytes per token.
	tape []token
}

// A token is a value or a member name. What it is, its first byte tells.
type token struct {
	start uint32 // in src
	// span is the length in bytes of a scalar, and of a container the number of
	// tokens from itself to its end.
	span uint32
}

// parseJSON makes the index. The tree keeps src, and does not change it.
func parseJSON(src []byte) (*jsonTree, *Error) {
	if len(bytes.Trim(src, " \t\r\n")) == 0 {
		return nil, &Error{Kind: Missing, Detail: "empty text where JSON is expected"}
	}
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		return nil, malformed("the JSON text begins with a byte order mark, which PHP's json_decode refuses")
	}
	if uint64(len(src)) > math.MaxUint32 {
		return nil, malformed("the JSON text is too long")
	}
	// Names are compared, and their text checked, only where a pointer looks:
	// elsewhere repeated names and broken UTF-8 are none of our business.
	dec := jsontext.NewDecoder(bytes.NewBuffer(src),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	t := &jsonTree{src: src, tape: make([]token, 0, len(src)/10+8)}
	if err := t.read(dec); err != nil {
		return nil, err
	}
	end := dec.InputOffset()
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, malformed("something follows the JSON value at byte %d", end)
	}
	return t, nil
}

// read puts the next value of the text, and all that it contains, on the tape.
func (t *jsonTree) read(dec *jsontext.Decoder) *Error {
	var open [maxDepth]int // the tape index of each container not yet closed
	for depth := 0; ; {
		switch dec.PeekKind() {
		case '{', '[':
			if depth == maxDepth {
				return malformed("JSON nested deeper than %d", maxDepth)
			}
			if _, err := dec.ReadToken(); err != nil {
				return notJSON(dec)
			}
			open[depth] = len(t.tape)
			depth++
			t.tape = append(t.tape, token{start: uint32(dec.InputOffset() - 1)})
		case '}', ']':
			if _, err := dec.ReadToken(); err != nil || depth == 0 {
				return notJSON(dec)
			}
			depth--
			t.tape[open[depth]].span = uint32(len(t.tape) - open[depth])
		default:
			raw, err := dec.ReadValue()
			if err != nil {
				return notJSON(dec)
			}
			start := dec.InputOffset() - int64(len(raw))
			t.tape = append(t.tape, token{start: uint32(start), span: uint32(len(raw))})
		}
		if depth == 0 {
			return nil
		}
	}
}

func notJSON(dec *jsontext.Decoder) *Error {
	return malformed("not JSON, or cut off, after byte %d", dec.InputOffset())
}

func (t *jsonTree) first(i int) byte { return t.src[t.tape[i].start] }

// raw returns a scalar's or name's text as it stands in the source.
func (t *jsonTree) raw(i int) []byte {
	k := t.tape[i]
	return t.src[k.start : k.start+k.span]
}

// next returns the index of what follows the value at i.
func (t *jsonTree) next(i int) int {
	if c := t.first(i); c == '{' || c == '[' {
		return i + int(t.tape[i].span)
	}
	return i + 1
}

// find follows a pointer from the value at i, and returns the index of what it
// points to; ok is false where there is no such thing.
func (t *jsonTree) find(i int, pointer []string) (at int, ok bool, err *Error) {
	for _, name := range pointer {
		switch t.first(i) {
		case '{':
			i, ok, err = t.member(i, name)
		case '[':
			i, ok = t.element(i, name)
		default:
			ok = false
		}
		if err != nil || !ok {
			return 0, false, err
		}
	}
	return i, true, nil
}

// member looks through all members of an object, so that a second one of the
// same name, however it is spelled, is seen: parsers differ on which counts.
func (t *jsonTree) member(object int, name string) (at int, ok bool, err *Error) {
	end := t.next(object)
	for i := object + 1; i < end; i = t.next(i + 1) {
		same, err := t.isNamed(i, name)
		if err != nil {
			return 0, false, err
		}
		if same && ok {
			return 0, false, malformed("an object on the way has the member %q twice", name)
		}
		if same {
			at, ok = i+1, true
		}
	}
	return at, ok, nil
}

func (t *jsonTree) isNamed(i int, name string) (bool, *Error) {
	raw := t.raw(i)
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner) == name, nil
	}
	// A reader that drops or replaces what is broken may see any name here.
	plain, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return false, malformed("a member name beside %q is no valid text", name)
	}
	return string(plain) == name, nil
}

// element finds the array item whose decimal index (no sign, no leading zero)
// is name.
func (t *jsonTree) element(array int, name string) (at int, ok bool) {
	n, err := strconv.ParseUint(name, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != name {
		return 0, false
	}
	end := t.next(array)
	for i := array + 1; i < end; i = t.next(i) {
		if n == 0 {
			return i, true
		}
		n--
	}
	return 0, false
}

// value reads the value at i.
func (t *jsonTree) value(i int) (Value, *Error) {
	switch t.first(i) {
	case '{', '[':
		return Value{Kind: container}, nil
	case 'n':
		return Value{}, nil
	case 't', 'f':
		return Value{Kind: Bool, Text: string(t.raw(i))}, nil
	case '"':
		raw := t.raw(i)
		if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
			return textValue(string(inner)), nil
		}
		plain, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return Value{}, malformed("the text is no valid UTF-8 or has half a surrogate pair")
		}
		return textValue(string(plain)), nil
	default:
		return Value{Kind: Number, Text: string(t.raw(i))}, nil
	}
}
