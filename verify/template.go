package verify

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

// A template is the text that a scheme signs, with placeholders in braces.
// A group in square brackets is left out where one of its placeholders has no
// value.
type template struct {
	segments []segment
	uses     map[string]bool // the kinds of placeholder that occur
}

type segment struct {
	kind     string // "" is literal text, "group" a group
	arg      string
	optional bool // an absent value is the empty text
	group    []segment
}

// placeholders are the kinds there are, and whether they take an argument.
var placeholders = map[string]bool{
	"body": false, "method": false, "target": false, "path": false, "url": false,
	"time": false, "secret": false, "secret_form": false, "crc32": false, "fields": false,
	"const": true, "header": true, "query": true, "form": true, "json": true,
	"param": true, "listed": true,
}

func parseTemplate(text string) (*template, error) {
	t := &template{uses: map[string]bool{}}
	segments, rest, err := t.parse(text, false)
	if err == nil && rest != "" {
		err = errors.New(`"]" without "["`)
	}
	t.segments = segments
	return t, err
}

// parse reads segments up to the end, or up to the bracket that ends a group.
func (t *template) parse(text string, inGroup bool) (segments []segment, rest string, err error) {
	for text != "" {
		i := strings.IndexAny(text, "{}[]")
		if i < 0 {
			i = len(text)
		}
		if i > 0 {
			segments = append(segments, segment{arg: text[:i]})
			text = text[i:]
			continue
		}
		switch text[0] {
		case '{':
			inside, after, ok := strings.Cut(text[1:], "}")
			if !ok {
				return nil, "", errors.New(`"{" without "}"`)
			}
			s, err := t.placeholder(inside)
			if err != nil {
				return nil, "", err
			}
			segments, text = append(segments, s), after
		case '[':
			if inGroup {
				return nil, "", errors.New("a group within a group")
			}
			group, after, err := t.parse(text[1:], true)
			if err != nil {
				return nil, "", err
			}
			if !strings.HasPrefix(after, "]") {
				return nil, "", errors.New(`"[" without "]"`)
			}
			segments, text = append(segments, segment{kind: "group", group: group}), after[1:]
		case ']':
			if !inGroup {
				return nil, "", errors.New(`"]" without "["`)
			}
			return segments, text, nil
		default:
			return nil, "", errors.New(`"}" without "{"`)
		}
	}
	return segments, "", nil
}

func (t *template) placeholder(inside string) (segment, error) {
	kind, arg, hasArg := strings.Cut(inside, ":")
	arg, optional := strings.CutSuffix(arg, "?")
	takes, known := placeholders[kind]
	switch {
	case !known:
		return segment{}, fmt.Errorf("unknown placeholder {%s}", inside)
	case takes != hasArg || takes && arg == "":
		return segment{}, fmt.Errorf("placeholder {%s}: an argument is missing or too many", inside)
	case kind == "json" && arg != "#" && !strings.HasPrefix(arg, "/"):
		return segment{}, fmt.Errorf("placeholder {%s}: no JSON pointer", inside)
	}
	t.uses[strings.TrimSuffix(kind, "_form")] = true
	return segment{kind: kind, arg: arg, optional: optional}, nil
}

// A scope is what the placeholders of one rendering stand for, beside the
// request itself.
type scope struct {
	r      *request
	doc    *document // the item that is signed; nil: the body
	item   int       // its number, from 1 on
	within string
	url    string
	time   string
	secret []byte
	params map[string]string
	fields *Fields
}

// render writes the signed text. An absent value is an *Error of kind Missing.
func (t *template) render(w io.Writer, s *scope) error {
	for _, seg := range t.segments {
		if seg.kind != "group" {
			if err := s.write(w, seg); err != nil {
				return missing(seg, err)
			}
			continue
		}
		var b strings.Builder
		err := renderGroup(&b, seg.group, s)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

func renderGroup(w io.Writer, group []segment, s *scope) error {
	for _, seg := range group {
		if err := s.write(w, seg); err != nil {
			return err
		}
	}
	return nil
}

// missing names the placeholder whose value is absent.
func missing(seg segment, err error) error {
	if errors.Is(err, errAbsent) {
		return &Error{Kind: Missing, Place: seg.kind + " " + seg.arg, Detail: "needed for the signed text"}
	}
	return err
}

func (s *scope) write(w io.Writer, seg segment) error {
	if seg.kind == "body" {
		_, err := w.Write(s.r.Body)
		return err
	}
	text, err := s.value(seg)
	if seg.optional && errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

func (s *scope) value(seg segment) (string, error) {
	switch seg.kind {
	case "", "const":
		return seg.arg, nil
	case "method":
		return s.r.Method, nil
	case "target":
		return s.r.Target, nil
	case "path":
		return s.r.RawPath(), nil
	case "url":
		return s.url, nil
	case "time":
		return s.time, nil
	case "secret":
		return string(s.secret), nil
	case "secret_form":
		return formEncode(string(s.secret)), nil
	case "crc32":
		return strconv.FormatUint(uint64(crc32.ChecksumIEEE(s.r.Body)), 10), nil
	case "fields":
		return s.fields.text(s.r)
	case "header":
		return oneHeader(s.r.Header, seg.arg)
	case "listed":
		return listedHeaders(s.r, seg.arg)
	case "query":
		return nonEmpty(s.r.queryValue(seg.arg))
	case "form":
		return s.r.formValue(seg.arg)
	case "json":
		return s.json(seg.arg)
	case "param":
		return s.params[seg.arg], nil
	}
	return "", fmt.Errorf("placeholder of kind %q", seg.kind)
}

// json reads from the item that is signed, or from the whole document.
func (s *scope) json(pointer string) (string, error) {
	if s.doc != nil {
		return s.doc.text(pointer)
	}
	doc, err := s.r.json(s.within)
	if err != nil {
		return "", err
	}
	return doc.text(pointer)
}

func nonEmpty(value string, err error) (string, error) {
	if err == nil && value == "" {
		return "", errAbsent
	}
	return value, err
}
