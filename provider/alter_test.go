package provider

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// A leaf is a part of a key that stands somewhere in the sample.
type leaf struct {
	keyextract.Part
	optional bool
}

// leaves are the key's parts as the sample has them: of a part that names several
// places, those where there is something.
func (b *bench) leaves(t *testing.T) (all [][]leaf) {
	t.Helper()
	for _, p := range b.Key {
		options := p.First
		if len(options) == 0 {
			options = []keyextract.Part{p}
		}
		var found []leaf
		for _, one := range options {
			if one.Method || one.Path != "" || one.Const != "" { // always there, and alone no key
				found = append(found, leaf{one, p.Optional})
				continue
			}
			spec := keyextract.Spec{Key: []keyextract.Part{one}, Each: b.Each}
			if one.Root { // alone it would be every item's
				alone := one
				alone.Root = false
				spec = keyextract.Spec{Key: []keyextract.Part{alone}}
			}
			rules, err := keyextract.Compile(spec)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := rules.Extract(keyextract.Parse(b.sample(""))); err == nil && len(v.Keys) > 0 && v.Keys[0] != "" {
				found = append(found, leaf{one, p.Optional || one.Optional})
			}
		}
		all = append(all, found)
	}
	return all
}

// settable reports whether alter can put something else there.
func (l leaf) settable() bool { return l.JSON != "" || l.Form != "" || l.Header != "" }

// absent, as a value, takes the place itself away.
var absent = json.RawMessage("absent")

// alter puts a JSON value at the leaf's place, in the first item of a batch. A
// header or a field of a form gets its text.
func (b *bench) alter(t *testing.T, d *delivery.Delivery, l leaf, value json.RawMessage) *delivery.Delivery {
	t.Helper()
	c := *d
	c.Header = d.Header.Clone()
	switch {
	case l.Header != "":
		if c.Header.Set(l.Header, text(value)); string(value) == string(absent) {
			c.Header.Del(l.Header)
		}
	case l.Form != "" && l.JSON != "":
		fields := parseFields(t, &c)
		fields.Set(l.Form, string(setJSON(t, []byte(fields.Get(l.Form)), l.JSON, value)))
		c.Body = []byte(fields.Encode())
	case l.Form != "":
		fields := parseFields(t, &c)
		if fields.Set(l.Form, text(value)); string(value) == string(absent) {
			fields.Del(l.Form)
		}
		c.Body = []byte(fields.Encode())
	default:
		c.Body = setJSON(t, d.Body, b.pointer(l), value)
	}
	return &c
}

// pointer is the leaf's place in the whole body.
func (b *bench) pointer(l leaf) string {
	switch {
	case b.Each == "" || l.Root:
		return l.JSON
	case b.Each == "#":
		return "/0" + l.JSON
	}
	return b.Each + "/0" + l.JSON
}

// text is what a JSON value is where there is no JSON.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

func parseFields(t *testing.T, d *delivery.Delivery) url.Values {
	t.Helper()
	fields, err := url.ParseQuery(string(d.Body))
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// setJSON puts a value at a pointer, which leads through objects and arrays that
// are there.
func setJSON(t *testing.T, body []byte, pointer string, value json.RawMessage) []byte {
	t.Helper()
	steps := strings.Split(pointer, "/")[1:]
	out, err := setIn(body, steps, value)
	if err != nil {
		t.Fatalf("%s in %s: %v", pointer, body, err)
	}
	return out
}

func setIn(body []byte, steps []string, value json.RawMessage) ([]byte, error) {
	if len(steps) == 0 {
		return value, nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		var items []json.RawMessage
		if err := json.Unmarshal(body, &items); err != nil {
			return nil, err
		}
		at, err := strconv.Atoi(steps[0])
		if err != nil {
			return nil, err
		}
		if items[at], err = setIn(items[at], steps[1:], value); err != nil {
			return nil, err
		}
		return joined('[', items, ']'), nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	if len(steps) == 1 && string(value) == string(absent) {
		delete(members, steps[0])
	} else {
		inner, err := setIn(members[steps[0]], steps[1:], value)
		if err != nil {
			return nil, err
		}
		members[steps[0]] = inner
	}
	var pairs []json.RawMessage
	for name, member := range members {
		pairs = append(pairs, json.RawMessage(strconv.Quote(name)+":"+string(member)))
	}
	slices.SortFunc(pairs, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return joined('{', pairs, '}'), nil
}

func joined(open byte, items []json.RawMessage, end byte) []byte {
	out := []byte{open}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, end)
}

// getJSON returns what stands at a pointer.
func getJSON(t *testing.T, body []byte, pointer string) json.RawMessage {
	t.Helper()
	for _, step := range strings.Split(pointer, "/")[1:] {
		var items []json.RawMessage
		if at, err := strconv.Atoi(step); err == nil && json.Unmarshal(body, &items) == nil {
			body = items[at]
			continue
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatalf("%s in %s: %v", pointer, body, err)
		}
		body = members[step]
	}
	return body
}

// asMultipart is the same form in the other dress.
func asMultipart(t *testing.T, d *delivery.Delivery) *delivery.Delivery {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, values := range parseFields(t, d) {
		for _, value := range values {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c := *d
	c.Header, c.Body = d.Header.Clone(), body.Bytes()
	c.Header.Set("Content-Type", w.FormDataContentType())
	return &c
}

// twice makes the place ambiguous: a member or field that stands twice, or a header
// of two lines.
func (b *bench) twice(t *testing.T, d *delivery.Delivery, l leaf) *delivery.Delivery {
	t.Helper()
	c := *d
	c.Header = d.Header.Clone()
	switch {
	case l.Header != "":
		c.Header.Add(l.Header, "other")
	case l.Form != "" && l.JSON != "":
		fields := parseFields(t, &c)
		fields.Set(l.Form, string(doubled(t, []byte(fields.Get(l.Form)), l.JSON)))
		c.Body = []byte(fields.Encode())
	case l.Form != "":
		c.Body = append(slices.Clone(d.Body), "&"+url.QueryEscape(l.Form)+"=other"...)
	default:
		c.Body = doubled(t, d.Body, b.pointer(l))
	}
	return &c
}

// doubled writes the member at a pointer twice.
func doubled(t *testing.T, body []byte, pointer string) []byte {
	t.Helper()
	parent, name := pointer[:strings.LastIndex(pointer, "/")], pointer[strings.LastIndex(pointer, "/")+1:]
	object := body
	if parent != "" {
		object = getJSON(t, body, parent)
	}
	object = bytes.TrimSpace(object)
	with := append([]byte("{"+strconv.Quote(name)+`:"other",`), object[1:]...)
	if parent == "" {
		return with
	}
	return setJSON(t, body, parent, with)
}
