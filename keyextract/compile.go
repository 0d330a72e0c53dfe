package keyextract

import (
	"fmt"
	"maps"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"oncegate/internal/phpvars"
)

// The words of Part.As.
const (
	asText     = "text"
	asSFString = "sf-string"
	asSHA256   = "sha256"
)

// Rules are a compiled Spec. They don't change and may be used concurrently.
type Rules struct {
	key []*part
	// One of these two is set where deliveries are batches.
	each    [][]string
	eachXML []string
	label   string // of each
	guard   []*part
	tags    []named
	named   []named
}

type named struct {
	name string
	part *part
}

// Compile checks a Spec and makes it ready. Its error is of type Faults.
func Compile(s Spec) (*Rules, error) {
	c := &compiler{}
	r := &Rules{}
	if s.Each != "" {
		r.label = "each " + s.Each
		if path, ok := strings.CutPrefix(s.Each, "xml:"); ok {
			c.batchXML = true
			r.eachXML = c.elements("each", path)
		} else {
			r.each = cutAtWildcards(c.pointer("each", s.Each))
		}
		if len(s.Key) == 0 {
			c.fault("each", "there is no key to read from the items")
		}
	}
	if len(s.Key) == 0 && len(s.Guard) > 0 {
		c.fault("guard", "a guard is a second key; there is no first")
	}
	if len(s.Key) == 0 && len(s.Tags) == 0 && len(s.Named) == 0 {
		c.fault("key", "say at least one part")
	}
	c.batch = s.Each != ""
	r.key = c.parts("key", s.Key, true)
	if c.batch && len(r.key) > 0 && !slices.ContainsFunc(r.key, (*part).readsItem) {
		c.fault("key", "no part is read from the item: all items of a batch would have one key")
	}
	c.different("key", r.key)
	c.batch = false
	r.guard = c.parts("guard", s.Guard, true)
	c.different("guard", r.guard)
	if len(s.Tags) > maxTags {
		c.fault("tags", "at most %d tags", maxTags)
	}
	r.tags = c.named("tags", s.Tags)
	r.named = c.named("named", s.Named)
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return r, nil
}

// readsItem reports whether the part's value can differ between a batch's items.
func (p *part) readsItem() bool {
	return p.inItem || slices.ContainsFunc(p.first, (*part).readsItem)
}

type compiler struct {
	faults Faults
	batch  bool // json parts point into an item
	// batchXML: the batch is XML, and xml parts do.
	batchXML bool
}

func (c *compiler) fault(field, format string, args ...any) {
	c.faults = append(c.faults, Fault{field, fmt.Sprintf(format, args...)})
}

func (c *compiler) named(field string, parts map[string]Part) []named {
	var out []named
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		at := field + "." + name
		if !goodName.MatchString(name) {
			c.fault(at, "a name is made of letters, digits, _ . and -, at most 64")
		}
		out = append(out, named{name, c.part(at, parts[name], false)})
	}
	return out
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func (c *compiler) parts(field string, parts []Part, mayBeOptional bool) []*part {
	var out []*part
	for i, p := range parts {
		out = append(out, c.part(fmt.Sprintf("%s[%d]", field, i), p, mayBeOptional))
	}
	return out
}

// different faults parts that are the same for every event.
func (c *compiler) different(field string, parts []*part) {
	if len(parts) > 0 && !slices.ContainsFunc(parts, func(p *part) bool { return !p.isFixed() }) {
		c.fault(field, "const, method and path tell no event from another (nor does a first that may come to one): all would have one key")
	}
}

func (c *compiler) part(field string, s Part, mayBeOptional bool) *part {
	p := &part{optional: s.Optional, as: s.As}
	if s.Optional && !mayBeOptional {
		c.fault(dotted(field, "optional"), "only a part of a key or guard can be optional")
	}
	whole := s.JSON
	if c.batchXML {
		whole = s.XML
	}
	if s.Root && (!c.batch || whole == "" || s.Form != "") {
		c.fault(dotted(field, "root"), "only a json part (or xml, as the batch is) in the key of a batch (each) can be read from the root")
	}
	switch s.As {
	case "", asText, asSHA256:
	case asSFString:
		if s.Header == "" {
			c.fault(dotted(field, "as"), "%s is for a header", asSFString)
		}
	default:
		c.fault(dotted(field, "as"), "one of %s, %s, %s", asText, asSFString, asSHA256)
	}
	places := s.places()
	switch {
	case len(places) == 0:
		c.fault(field, "say where the value stands: one of %s", allPlaces)
		return p
	case len(places) == 2 && s.JSON != "" && s.Form != "":
	case len(places) > 1:
		c.fault(field, "a value stands in one place (or in the json of a form field), not in: %s", strings.Join(places, ", "))
		return p
	}
	c.place(field, s, p)
	return p
}

const allPlaces = "json, header, query, form, xml, path, method, const, digest, first"

// places returns the names of the places that are set.
func (s *Part) places() []string {
	var set []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"json", s.JSON != ""}, {"header", s.Header != ""}, {"query", s.Query != ""},
		{"form", s.Form != ""}, {"xml", s.XML != ""}, {"path", s.Path != ""},
		{"method", s.Method}, {"const", s.Const != ""}, {"digest", s.Digest != ""},
		{"first", len(s.First) > 0},
	} {
		if f.set {
			set = append(set, f.name)
		}
	}
	return set
}

// place compiles the one place that is set.
func (c *compiler) place(field string, s Part, p *part) {
	switch {
	case s.Form != "":
		p.in, p.name, p.label = inForm, s.Form, "form "+s.Form
		p.field = c.fieldName(dotted(field, "form"), s.Form)
		if s.JSON != "" {
			p.in, p.label = inFormJSON, p.label+" json "+s.JSON
			p.path = c.pointer(dotted(field, "json"), s.JSON)
		}
	case s.JSON != "":
		p.in, p.label = inJSON, "json "+s.JSON
		p.path = c.pointer(dotted(field, "json"), s.JSON)
		p.inItem = c.batch && !s.Root
		if c.batch && c.batchXML {
			c.fault(dotted(field, "json"), "the batch is XML, as each says")
		}
	case s.Header != "":
		p.in, p.name, p.label = inHeader, textproto.CanonicalMIMEHeaderKey(s.Header), "header "+s.Header
		if !headerName.MatchString(s.Header) {
			c.fault(dotted(field, "header"), "no header has such a name")
		}
	case s.Query != "":
		p.in, p.label = inQuery, "query "+s.Query
		p.field = c.fieldName(dotted(field, "query"), s.Query)
	case s.XML != "":
		p.in, p.label = inXML, "xml "+s.XML
		p.path = c.elements(dotted(field, "xml"), s.XML)
		p.inItem = c.batch && c.batchXML && !s.Root
	case s.Path != "":
		p.in, p.label = inPath, "path "+s.Path
		p.pattern = c.pattern(dotted(field, "path"), s.Path)
	case s.Method:
		p.in, p.label = isMethod, "method"
	case s.Const != "":
		p.in, p.name, p.label = isConst, s.Const, "const"
		if textValue(s.Const).Kind == 0 {
			c.fault(dotted(field, "const"), "a constant is more than blanks")
		}
	case s.Digest != "":
		p.in, p.label = isDigest, "digest "+s.Digest
		if s.Digest != "body" {
			c.fault(dotted(field, "digest"), "only the body can be digested")
		}
	default:
		p.in, p.label = isFirst, "first"
		p.first = c.parts(dotted(field, "first"), s.First, false)
	}
}

var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$")
	elementPath = regexp.MustCompile(`^(/[^/:\s<>&"'=]+){1,32}$`)
)

func (c *compiler) pointer(field, s string) []string {
	path, err := parsePointer(s)
	if err != nil {
		c.fault(field, "%v", err)
	}
	return path
}

func (c *compiler) elements(field, s string) []string {
	if !elementPath.MatchString(s) {
		c.fault(field, "a path of element names without prefixes, as in /Envelope/Body/Id")
	}
	return strings.Split(strings.TrimPrefix(s, "/"), "/")
}

func (c *compiler) fieldName(field, s string) []string {
	name := phpvars.Name(s)
	if name == nil {
		c.fault(field, "PHP drops a field of this name")
	}
	return name
}

func (c *compiler) pattern(field, s string) *regexp.Regexp {
	re, err := regexp.Compile(s)
	if err != nil {
		c.fault(field, "%v", err)
		return nil
	}
	if re.NumSubexp() != 1 {
		c.fault(field, "a regular expression with exactly one capturing group, as in ^/hooks/([^/]+)$")
	}
	return re
}
