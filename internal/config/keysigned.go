package config

import (
	"slices"
	"strings"

	"oncegate/keyextract"
	"oncegate/verify"
)

// keySigned reports whether every part of the key lies within what one of the
// schemes signs. What is not plainly signed counts as unsigned: then a second
// body under a known key is refused, not answered with the first one's answer.
func keySigned(specs []verify.Spec, rules keyextract.Spec) bool {
	if len(rules.Key) == 0 {
		return false
	}
	return !slices.ContainsFunc(rules.Key, func(p keyextract.Part) bool {
		return !slices.ContainsFunc(specs, func(s verify.Spec) bool { return signs(s, p) })
	})
}

// signs reports whether a scheme signs the place where a part stands.
func signs(s verify.Spec, p keyextract.Part) bool {
	switch {
	case len(p.First) > 0:
		return !slices.ContainsFunc(p.First, func(one keyextract.Part) bool { return !signs(s, one) })
	case p.Const != "":
		return true
	case len(s.Any) > 0: // the delivery chooses which of them holds
		return !slices.ContainsFunc(s.Any, func(one verify.Spec) bool { return !signs(one, p) })
	case s.HTTP != "": // the verifier sees the whole delivery, but nobody says what it looks at
		return false
	case s.JWT != "":
		return s.Claims != nil && s.Claims.BodySHA256 != "" && inBody(p)
	case s.HMAC == "" && s.Hash == "" && !s.Ed25519 && s.ECDSA == "" && s.RSA == "":
		return false
	}
	text := s.Signed
	if text == "" {
		text = "{body}"
	}
	has := func(placeholder string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(placeholder))
	}
	switch {
	case inBody(p) && (has("{body}") || s.BodyHash != nil):
		return true
	case p.JSON != "" && p.Form == "":
		return strings.Contains(text, "{json:"+p.JSON+"}")
	case p.Form != "" && p.JSON == "":
		return strings.Contains(text, "{form:"+p.Form+"}")
	case p.Header != "":
		return has("{header:" + p.Header + "}")
	case p.Query != "":
		return has("{target}") || has("{url}") || strings.Contains(text, "{query:"+p.Query+"}")
	case p.Path != "":
		return has("{path}") || has("{target}") || has("{url}")
	case p.Method:
		return has("{method}")
	}
	return false
}

// inBody reports whether a part stands in the body.
func inBody(p keyextract.Part) bool {
	return p.JSON != "" || p.Form != "" || p.XML != "" || p.Digest != ""
}
