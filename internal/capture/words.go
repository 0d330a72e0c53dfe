package capture

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// shellWords splits a command into words as a POSIX shell does, and knows $'...'
// besides, which browsers write. It expands nothing: a command that would need
// that is refused, since its body can't be known.
func shellWords(text string) ([]string, error) {
	s := &shell{rest: text}
	for s.rest != "" {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.end()
	return s.words, nil
}

type shell struct {
	rest  string
	words []string
	word  strings.Builder
	open  bool // there is a word, which may be empty
}

func (s *shell) add(text string) {
	s.word.WriteString(text)
	s.open = true
}

func (s *shell) end() {
	if s.open {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.open = false
}

func (s *shell) next() error {
	c := s.rest[0]
	switch {
	case strings.HasPrefix(s.rest, "$'"):
		return s.ansi()
	case strings.IndexByte(" \t\r\n", c) >= 0:
		s.end()
	case c == '\'':
		text, after, ok := strings.Cut(s.rest[1:], "'")
		if !ok {
			return errQuote
		}
		s.add(text)
		s.rest = after
		return nil
	case c == '"':
		return s.double()
	case c == '\\':
		return s.escape()
	case strings.IndexByte("$`|&;<>()", c) >= 0:
		return wrong("the curl command has a bare %q, which a shell would act on; quote it", c)
	default:
		s.add(s.rest[:1])
	}
	s.rest = s.rest[1:]
	return nil
}

var errQuote = wrong("a quote of the curl command does not end")

// escape reads a backslash outside quotes. Before a line end it joins lines.
func (s *shell) escape() error {
	for _, end := range []string{"\\\r\n", "\\\n"} {
		if after, ok := strings.CutPrefix(s.rest, end); ok {
			s.rest = after
			return nil
		}
	}
	if len(s.rest) < 2 {
		s.rest = "" // at the end of a command that was cut there
		return nil
	}
	_, size := utf8.DecodeRuneInString(s.rest[1:])
	s.add(s.rest[1 : 1+size])
	s.rest = s.rest[1+size:]
	return nil
}

// double reads what stands in double quotes.
func (s *shell) double() error {
	s.open = true
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return nil
		case c == '$' || c == '`':
			return wrong("the curl command has a %q in double quotes, which a shell would expand; use single quotes", c)
		case c == '\\' && i+1 < len(s.rest):
			i++
			switch next := s.rest[i]; {
			case next == '\n':
			case strings.IndexByte("\"\\$`", next) >= 0:
				s.word.WriteByte(next)
			default:
				s.word.WriteString(s.rest[i-1 : i+1])
			}
		default:
			s.word.WriteByte(c)
		}
	}
	return errQuote
}

// ansi reads $'...' with its escapes.
func (s *shell) ansi() error {
	s.open = true
	text := s.rest[2:]
	for text != "" {
		if text[0] == '\'' {
			s.rest = text[1:]
			return nil
		}
		if text[0] != '\\' {
			s.word.WriteByte(text[0])
			text = text[1:]
			continue
		}
		after, err := s.ansiEscape(text[1:])
		if err != nil {
			return err
		}
		text = after
	}
	return errQuote
}

// simple are the escapes of one letter.
var simple = map[byte]byte{
	'n': '\n', 'r': '\r', 't': '\t', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v', 'e': 0x1b, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiEscape reads an escape, whose backslash is gone, and returns what follows.
func (s *shell) ansiEscape(text string) (after string, err error) {
	if text == "" {
		return "", errQuote
	}
	if c, ok := simple[text[0]]; ok {
		s.word.WriteByte(c)
		return text[1:], nil
	}
	digits, base, most := text, 8, 3
	switch text[0] {
	case 'x':
		digits, base, most = text[1:], 16, 2
	case 'u':
		digits, base, most = text[1:], 16, 4
	case 'U':
		digits, base, most = text[1:], 16, 8
	}
	n := 0
	for n < len(digits) && n < most && isDigit(digits[n], base) {
		n++
	}
	code, err := strconv.ParseUint(digits[:n], base, 32)
	if err != nil {
		return "", wrong("the curl command has an escape that can't be read in $'...'")
	}
	if text[0] != 'u' && text[0] != 'U' {
		s.word.WriteByte(byte(code))
		return digits[n:], nil
	}
	// Browsers write two halves of a pair.
	if low := digits[n:]; utf16.IsSurrogate(rune(code)) && len(low) >= 6 && low[:2] == `\u` {
		if half, err := strconv.ParseUint(low[2:6], 16, 32); err == nil {
			s.word.WriteRune(utf16.DecodeRune(rune(code), rune(half)))
			return low[6:], nil
		}
	}
	s.word.WriteRune(rune(code))
	return digits[n:], nil
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(c), base, 8)
	return err == nil
}
