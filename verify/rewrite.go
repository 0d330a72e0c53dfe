package verify

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A jsonStyle is how a program writes JSON: what stands between members, and what
// it escapes beyond what it must.
type jsonStyle struct {
	comma, colon string
	slash        bool // "/" as "\/"
	ascii        bool // nothing but ASCII
	html         bool // "<", ">" and "&" as \u003c and so on
}

var (
	javaScript = jsonStyle{comma: ",", colon: ":"}
	php        = jsonStyle{comma: ",", colon: ":", slash: true, ascii: true}
	python     = jsonStyle{comma: ", ", colon: ": ", ascii: true}
	golang     = jsonStyle{comma: ",", colon: ":", html: true}
)

// rewrite writes a JSON text in that style: the same members in the same order,
// numbers as they stand. What is no JSON stays as it is.
func (s jsonStyle) rewrite(text []byte) []byte {
	if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
		case ',':
			out = append(out, s.comma...)
		case ':':
			out = append(out, s.colon...)
		case '"':
			end := endOfString(text, i)
			plain, err := jsontext.AppendUnquote(nil, text[i:end])
			if err != nil {
				return text
			}
			out, i = s.quote(out, plain), end-1
		default:
			out = append(out, c)
		}
	}
	return out
}

// endOfString returns the index behind the string that begins at start. The text
// is valid JSON.
func endOfString(text []byte, start int) int {
	for i := start + 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// shortEscapes are the escapes of JSON that have a letter.
var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func (s jsonStyle) quote(out, plain []byte) []byte {
	out = append(out, '"')
	for _, r := range string(plain) {
		switch short, ok := shortEscapes[r]; {
		case ok:
			out = append(out, short...)
		case r == '/' && s.slash:
			out = append(out, `\/`...)
		case r < ' ', r > '~' && s.ascii && r <= 0xffff, strings.ContainsRune("<>&", r) && s.html:
			out = fmt.Appendf(out, `\u%04x`, r)
		case r > 0xffff && s.ascii:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, '"')
}

// rewriteForm writes a urlencoded form anew, blanks as plus or as %20. What is no
// form stays as it is.
func rewriteForm(body []byte, blank string) []byte {
	fields, err := splitForm(string(body), "form")
	if err != nil || !bytes.Contains(body, []byte("=")) {
		return body
	}
	pairs := make([]string, len(fields))
	for i, f := range fields {
		pairs[i] = strings.ReplaceAll(url.QueryEscape(f.name)+"="+url.QueryEscape(f.value), "+", blank)
	}
	return []byte(strings.Join(pairs, "&"))
}

// asLatin1 undoes what makes UTF-8 of a text in ISO 8859-1, once or once too often.
// What can't have come so stays as it is.
func asLatin1(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for _, r := range string(body) {
		if r > 0xff { // also for broken UTF-8, which reads as U+FFFD
			return body
		}
		out = append(out, byte(r))
	}
	return out
}

// asUTF8 reads every byte as a sign of ISO 8859-1.
func asUTF8(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for _, b := range body {
		out = utf8.AppendRune(out, rune(b))
	}
	return out
}
