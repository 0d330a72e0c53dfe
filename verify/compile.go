package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Faults are all that is wrong with a list of Specs. It is the type of
// Compile's errors.
type Faults []Fault

// A Fault is one thing that is wrong with a Spec.
type Fault struct {
	Field string // dotted, from the list on: "[0].format"
	Msg   string // never holds a secret
}

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Field + ": " + f.Msg
	}
	return strings.Join(lines, "\n")
}

// Unverified reports whether the specs say, in so many words, that deliveries
// are not verified.
func Unverified(specs []Spec) bool { return len(specs) == 1 && specs[0].None }

// Compile checks specs and makes a Verifier of them. It asks for the secrets
// once: one that is missing, empty or can't be decoded is a fault that names
// its number. Specs that are Unverified give a nil Verifier and no error. The
// error is Faults.
func Compile(specs []Spec, o Options) (*Verifier, error) {
	if Unverified(specs) {
		return nil, nil
	}
	c := &compiler{o: o, fetch: newFetcher(o.Transport)}
	v := &Verifier{specs: specs, options: o}
	authenticates := false
	for i := range specs {
		s := c.scheme(fmt.Sprintf("[%d]", i), &specs[i], false)
		_, addition := s.(*allowList)
		authenticates = authenticates || !addition
		v.schemes = append(v.schemes, s)
	}
	switch {
	case len(specs) == 0:
		c.fault("", "nothing is verified; say how, or write none: true")
	case !authenticates:
		c.fault("", "ips is an addition; say a scheme beside it, or none: true")
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return v, nil
}

type compiler struct {
	o      Options
	fetch  *fetcher
	faults Faults
}

func (c *compiler) fault(field string, format string, args ...any) {
	c.faults = append(c.faults, Fault{field, fmt.Sprintf(format, args...)})
}

// note turns an error into a fault and reports whether there was none.
func (c *compiler) note(field string, err error) bool {
	if err != nil {
		c.fault(field, "%s", err)
	}
	return err == nil
}

// scheme compiles one spec. Within alternatives a secret need not suit every
// one of them.
func (c *compiler) scheme(field string, s *Spec, alternative bool) scheme {
	words := s.words()
	if len(words) != 1 {
		c.fault(field, "exactly one of hmac, hash, ed25519, ecdsa, rsa, jwt, token, basic, http, ips, any has to be set; set here: %s", strings.Join(words, ", "))
		return &allowList{}
	}
	for _, name := range s.idle(words[0]) {
		c.fault(field+"."+name, "has no meaning with %s", words[0])
	}
	switch words[0] {
	case "none":
		c.fault(field, "none stands alone")
	case "any":
		return c.alternatives(field, s)
	case "token", "basic":
		return c.shared(field, s, alternative)
	case "ips":
		return c.ips(field, s)
	case "http":
		return c.forward(field, s)
	case "jwt":
		return c.jwt(field, s, alternative)
	default:
		return c.signed(field, s, words[0], alternative)
	}
	return &allowList{}
}

// words are the schemes that a spec names.
func (s *Spec) words() []string {
	var words []string
	for word, set := range map[string]bool{
		"none": s.None, "hmac": s.HMAC != "", "hash": s.Hash != "", "ed25519": s.Ed25519, "ecdsa": s.ECDSA != "",
		"rsa": s.RSA != "", "jwt": s.JWT != "", "token": s.Token, "basic": s.Basic, "http": s.HTTP != "",
		"ips": len(s.IPs) > 0, "any": len(s.Any) > 0,
	} {
		if set {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// secrets returns the source of a spec's secrets.
func (c *compiler) secrets(s *Spec) Secrets {
	if len(s.Secrets) > 0 {
		own := slices.Clone(s.Secrets)
		return func() ([]string, error) { return own, nil }
	}
	if c.o.Secrets != nil {
		return c.o.Secrets
	}
	return func() ([]string, error) { return nil, nil }
}

// signed compiles a scheme that signs a text.
func (c *compiler) signed(field string, s *Spec, word string, alternative bool) scheme {
	out := &signed{lower: s.Lower, fields: s.Fields, within: s.Within, each: s.Each, absent: s.Absent, params: c.o.Params}
	before := len(c.faults)
	cryptography, size, err := c.engine(s, word, alternative)
	if err != nil {
		c.fault(field+"."+word, "%s", err)
		return out
	}
	out.engine = cryptography
	if out.place, err = onePlace(s.Header, "", s.JSON, s.Form, s.Query); c.note(field, err) && out.place.kind == "" {
		c.fault(field, "say where the signature stands: header, json, form or query")
	}
	out.format, err = parseFormat(s.Format, s.List, size)
	c.note(field+".format", err)
	text := s.Signed
	if text == "" {
		text = "{body}"
	}
	out.text, err = parseTemplate(text)
	c.note(field+".signed", err)
	if s.Time != nil {
		out.time, err = compileTime(s.Time)
		c.note(field, err)
	}
	out.bodyHash, err = compileBodyHash(s.BodyHash)
	c.note(field, err)
	if s.Fields != nil {
		c.note(field, s.Fields.check())
	}
	out.pinned, err = compileEquals(s.Equals, c.o.Params)
	c.note(field, err)
	if len(c.faults) > before {
		return out
	}
	if out.text.uses["url"] {
		out.url, err = compileURL(c.o.PublicURL, s.Port, s.Decode)
		c.note(field, err)
	}
	c.note(field, out.agrees(word == "hash", s))
	c.note(field+".secrets", out.ready())
	return out
}

// agrees checks what the parts of a scheme need from each other.
func (c *signed) agrees(plain bool, s *Spec) error {
	inFormat, inText := c.format.carriesTime(), c.text.uses["time"]
	switch {
	case (inFormat || inText) && c.time == nil:
		return errNoTime
	case c.time != nil && c.time.place.kind == "" && !inFormat:
		return errors.New("time: says no place, and the format holds no {time}")
	case c.time != nil && c.time.place.kind != "" && inFormat:
		return errors.New("time: stands in two places")
	case c.text.uses["fields"] && c.fields == nil:
		return errors.New("{fields} is used, and fields: says nothing of them")
	case c.text.uses["secret"] && !plain:
		return errors.New("{secret} belongs to hash only")
	case plain && !c.text.uses["secret"]:
		return errors.New("hash: without {secret} in the signed text anybody can make it")
	case c.fields != nil && !c.text.uses["fields"]:
		return errors.New("fields: is of no use without {fields} in the signed text")
	case (s.Port != "" || s.Decode != "") && c.url == nil:
		return errors.New("port, decode: are of no use without {url} in the signed text")
	case c.each != "" && c.place.kind != "json":
		return errors.New("each: the signature of an item stands in its JSON")
	}
	for _, seg := range c.text.segments {
		for _, p := range append(seg.group, seg) {
			if p.kind == "param" && c.params[p.arg] == "" {
				return fmt.Errorf("params.%s: is needed for the signed text", p.arg)
			}
		}
	}
	return nil
}

// engine makes the cryptography and says how long a signature is.
func (c *compiler) engine(s *Spec, word string, lenient bool) (engine, int, error) {
	if word != "hmac" && word != "hash" {
		return c.publicKey(s, word, lenient)
	}
	h, err := newHash(s.HMAC + s.Hash)
	if err != nil {
		return nil, 0, err
	}
	decode, err := hmacKey(s.Encoding)
	if err != nil {
		return nil, 0, err
	}
	return &keyedHash{h, word == "hash", &keyring[[]byte]{source: c.secrets(s), decode: decode, lenient: lenient}}, h().Size(), nil
}
