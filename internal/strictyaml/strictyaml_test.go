package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type Shared struct {
	Wait *time.Duration `yaml:"wait"`
}

type item struct {
	JSON     string `yaml:"json"`
	Optional bool   `yaml:"optional"`
}

type word string

type document struct {
	Name     string          `yaml:"name"`
	Mode     word            `yaml:"mode"`
	Pointer  *string         `yaml:"pointer"`
	Flag     bool            `yaml:"flag"`
	Count    int             `yaml:"count"`
	Small    int8            `yaml:"small"`
	Rate     float64         `yaml:"rate"`
	Lease    time.Duration   `yaml:"lease"`
	MaxBody  Size            `yaml:"max_body"`
	Secrets  []string        `yaml:"secrets"`
	Key      []item          `yaml:"key"`
	Tags     map[string]item `yaml:"tags"`
	Inner    *item           `yaml:"inner"`
	Raw      yaml.Node       `yaml:"raw"`
	Shared   `yaml:",inline"`
	Untagged string
}

func decode(text string, o Options) (document, Faults) {
	var got document
	root, faults := Parse([]byte(text))
	if faults == nil {
		faults = Decode(root, &got, o)
	}
	return got, faults
}

func TestDecodeFills(t *testing.T) {
	text := `
name: 0123
mode: off
pointer: ""
flag: true
count: -5
small: 127
rate: 0.5
lease: 1d12h30m
max_body: 5MiB
secrets: one
key: [{json: /id, optional: true}, {json: "/a"}]
tags: {order: {json: /o}}
inner: {json: /i}
raw: [1, null]
wait: 250ms
`
	got, faults := decode(text, Options{})
	if faults != nil {
		t.Fatal(faults)
	}
	if got.Raw.Kind != yaml.SequenceNode || len(got.Raw.Content) != 2 {
		t.Errorf("raw node not kept: %+v", got.Raw)
	}
	got.Raw = yaml.Node{}
	wait, empty := 250*time.Millisecond, ""
	want := document{
		Name: "0123", Mode: "off", Pointer: &empty, Flag: true, Count: -5, Small: 127, Rate: 0.5,
		Lease: 36*time.Hour + 30*time.Minute, MaxBody: 5 << 20, Secrets: []string{"one"},
		Key:  []item{{"/id", true}, {"/a", false}},
		Tags: map[string]item{"order": {JSON: "/o"}}, Inner: &item{JSON: "/i"},
		Shared: Shared{Wait: &wait},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key, near", "nam: x", `line 1: nam: is no field here; did you mean name?`},
		{"unknown key, dash", "max-body: 1", `line 1: max-body: is no field here; did you mean max_body?`},
		{"unknown key, inner", "inner:\n  jsn: /x", `line 2: inner.jsn: is no field here; did you mean json?`},
		{"unknown key, far", "inner: {zzzzzzzz: 1}", `line 1: inner.zzzzzzzz: is no field here; known here: json, optional`},
		{"unknown key that may be a secret", "inner: {json:s3cr3t}", `line 1: inner: has an unknown key (not shown: it looks like no name); known here: json, optional`},
		{"duplicate key", "name: a\nflag: true\nname: b", `line 3: name: is given twice, first on line 1; remove one`},
		{"duplicate map key", "tags:\n  a: {json: /x}\n  a: {json: /y}", `line 3: tags.a: is given twice, first on line 2; remove one`},
		{"no value", "name:", `line 1: name: has no value; give it one, or remove the line`},
		{"no value in a list", "secrets: [a, ]\nkey: [~]", `line 2: key[0]: has no value; give it one, or remove the line`},
		{"list for text", "name: [a]", `line 1: name: must be a single value, but is a list`},
		{"mapping for text in a list", "secrets: [a, {b: c}]", `line 1: secrets[1]: must be a single value, but is a mapping`},
		{"text for mapping", "inner: x", `line 1: inner: must be a mapping (name: value), but is text`},
		{"number for mapping", "inner: 5", `line 1: inner: must be a mapping (name: value), but is a number`},
		{"true for text", "name: true", `line 1: name: must be text, but is true or false; write it in quotes if it is meant`},
		{"text for bool", "flag: yes", `line 1: flag: must be true or false`},
		{"number", "count: 0x10", `line 1: count: must be a whole number, without sign of thousands or leading zeros`},
		{"leading zero", "count: 010", `line 1: count: must be a whole number, without sign of thousands or leading zeros`},
		{"range", "small: 128", `line 1: small: is a number out of range`},
		{"float", "rate: .nan", `line 1: rate: must be a number`},
		{"duration", "lease: 30", `line 1: lease: must be a duration such as 250ms, 30s, 1h30m or 35d`},
		{"size", "max_body: 5mb", `line 1: max_body: must be a size such as 256KiB, 5MiB, 25MB or a number of bytes`},
		{"key is a list", "? [a]\n: b", `line 1: has a key that is no name`},
		{"merge", "<<: {name: a}", `line 1: merge keys (<<) are not supported; write the fields out`},
		{"alias", "name: &a x\npointer: *a", "line 1: anchors (&name) are not supported; write the value out, or quote it if it begins with &\n" +
			"line 2: aliases (*name) are not supported; write the value out, or quote it if it begins with *"},
		{"unknown alias is not named", "name: *s3cret", `is not YAML near here: unknown anchor '...' referenced`},
		{"tag", "name: !secret x", `line 1: tags (!name) are not supported; quote the value if it begins with !`},
		{"syntax", "name: a\ninner: b: c", `line 2: is not YAML near here: mapping values are not allowed in this context`},
		{"syntax with marks", "name: [a }", `is not YAML near here: did not find expected ',' or ']'`},
		{"syntax in a list", "name: a\nflag: true\nsecrets: [a, ${B}]", `line 3: is not YAML near here: did not find expected ',' or ']'`},
		{"a list that goes on", "name: a\nsecrets:\n  - a\n b: c", `line 4: is not YAML near here: did not find expected key`},
		{"tab", "name: a\ninner:\n\tjson: b", `line 3: is not YAML near here: found character that cannot start any token; line 3 is indented with a tab, and YAML takes blanks only`},
		{"tab after blanks", "name: a\ninner:\n  json: b\n \toptional: true", `line 3: is not YAML near here: found a tab character that violates indentation; line 4 is indented with a tab, and YAML takes blanks only`},
		{"two documents", "name: a\n---\nname: b", `line 2: a second document begins here; only one is read`},
		{"empty", "# nothing\n", `is empty`},
		{"all at once", "lease: x\nnam: y\ncount: z", "line 1: lease: " + errDuration.Error() +
			"\nline 2: nam: is no field here; did you mean name?\nline 3: count: " + errNumber.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, faults := decode(c.text, Options{})
			if got := faults.Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat("*"+string(i-1)+",", 9), ","))
	}
	for _, c := range []struct{ name, text, want string }{
		{"a billion laughs", laughs, "anchors (&name) are not supported"},
		{"too deep", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "levels deep"},
		{"far too deep", strings.Repeat("[", 100_000), "is not YAML"},
		{"too large", "name: " + strings.Repeat("x", MaxBytes), "is larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, faults := Parse([]byte(c.text))
			if !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got %.200s, want %s", faults.Error(), c.want)
			}
		})
	}
	t.Run("many faults are counted, not listed", func(t *testing.T) {
		_, faults := decode(strings.Repeat("x: 1\n", 500), Options{})
		if lines := strings.Split(faults.Error(), "\n"); len(lines) != maxReported+1 || !strings.HasPrefix(lines[maxReported], "and ") {
			t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
		}
	})
}

func TestExpand(t *testing.T) {
	refused := errors.New("variable NOPE is not set")
	o := Options{Field: "top", Expand: func(s string) (string, error) {
		if s == "${NOPE}" {
			return "", refused
		}
		return strings.NewReplacer("${N}", "7", "${T}", "3s").Replace(s), nil
	}}
	got, faults := decode("name: a${N}\ncount: ${N}\nlease: '${T}'\nsecrets: [x, '${NOPE}']\nraw: ${N}", o)
	if want := "line 4: top.secrets[1]: variable NOPE is not set"; faults.Error() != want {
		t.Errorf("got %s, want %s", faults.Error(), want)
	}
	if got.Name != "a7" || got.Count != 7 || got.Lease != 3*time.Second || got.Raw.Value != "${N}" {
		t.Errorf("not expanded: %+v", got)
	}
}

func TestDecodeWithoutNode(t *testing.T) {
	for _, n := range []*yaml.Node{nil, {}} {
		if faults := Decode(n, new(document), Options{Field: "verify"}); faults.Error() != "verify: is empty" {
			t.Errorf("got %v", faults)
		}
	}
}

func TestParseDuration(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "35d": 35 * day, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "36500d": maxDays * day,
		"": -1, "5": -1, "-5s": -1, "+5s": -1, "1d-5s": -1, "1.5d": -1, "d": -1, "5 d": -1, "36501d": -1, "99999999999d": -1, "9999999h": -1, "1d1d": -1, "5w": -1,
	} {
		got, err := ParseDuration(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1024": 1024, "10B": 10, "25MB": 25e6, "5MiB": 5 << 20, "256KiB": 256 << 10, "1GiB": 1 << 30, "3GB": 3e9, "7KB": 7000,
		"": -1, "MiB": -1, "5 MiB": -1, "-1": -1, "5M": -1, "5mib": -1, "5BB": -1, "1e3": -1, "9223372036854775807GiB": -1, "5i": -1,
	} {
		got, err := ParseSize(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestLineAndKeys(t *testing.T) {
	root, faults := Parse([]byte("name: x\nroutes:\n  b:\n    secrets:\n      - one\n      - two\n  a: {path: /x}\n"))
	if faults != nil {
		t.Fatal(faults)
	}
	for field, want := range map[string]int{
		"name": 1, "routes": 2, "routes.b": 3, "routes.b.secrets": 4, "routes.b.secrets[1]": 6, "routes.b.secrets[9]": 4,
		"routes.a.path": 7, "routes.a.nothing": 7, "routes.a[0].path": 7, "routes.b[1].secrets": 3, "routes.none": 2, "none": 1, "": 1,
	} {
		if got := Line(root, field); got != want {
			t.Errorf("Line(%q) = %d, want %d", field, got, want)
		}
	}
	if got := Keys(root, "routes"); !reflect.DeepEqual(got, []string{"b", "a"}) {
		t.Errorf("Keys = %q", got)
	}
	if Line(nil, "x") != 0 || Keys(nil, "") != nil || Keys(root, "name") != nil || Keys(root, "none.x") != nil {
		t.Error("what is not there has no line and no keys")
	}
}

func TestFaultText(t *testing.T) {
	fs := Faults{{Msg: "m"}, {File: "f", Field: "x", Msg: "m"}, {File: "f", Line: 9, Msg: "m"}, {Line: 2, Field: "y", Msg: "m"}}
	fs.Sort()
	if got, want := fs.Error(), "line 2: y: m\nf:9: m\nm\nf: x: m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Faults(nil).Err() != nil || fs.Err() == nil {
		t.Error("Err must be nil for no faults, and only for those")
	}
}

// FuzzDecode: whatever the text, there is no panic and no fault that quotes a
// value, and decoding costs no more than the text is long.
func FuzzDecode(f *testing.F) {
	f.Add("name: CANARY7\nlease: CANARY7")
	f.Add("inner: {json:CANARY7}\nsecrets: {CANARY7: }")
	f.Add("pointer: *CANARY7\n")
	f.Add("count: !CANARY7 1\n<<: &CANARY7 {}")
	f.Add("tags: {? [CANARY7] : 1}\n%CANARY7")
	f.Fuzz(func(t *testing.T, text string) {
		_, faults := decode(text, Options{})
		for _, fault := range faults {
			if strings.Contains(fault.Msg, "CANARY7") {
				t.Fatalf("a fault quotes the document: %s", fault.Msg)
			}
			if strings.ContainsAny(fault.String(), "\r\n") {
				t.Fatalf("a fault of several lines: %q", fault.String())
			}
		}
	})
}
