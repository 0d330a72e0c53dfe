package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
)

// setClaims takes the claims, with parameters filled in.
func (t *jsonToken) setClaims(claims *Claims, params map[string]string) error {
	if claims == nil {
		return errors.New("say what the token must claim")
	}
	t.claims = *claims
	var open error
	fill := func(text string) string {
		text = expandParams(text, params)
		if strings.Contains(text, "{param:") || text == "" {
			open = fmt.Errorf("%q: a parameter is not set", text)
		}
		return text
	}
	t.claims.Issuer = slices.Clone(claims.Issuer)
	for i, text := range t.claims.Issuer {
		t.claims.Issuer[i] = fill(text)
	}
	t.claims.Audience = slices.Clone(claims.Audience)
	for i, text := range t.claims.Audience {
		t.claims.Audience[i] = fill(text)
	}
	t.claims.Equals = map[string]string{}
	for name, text := range claims.Equals {
		t.claims.Equals[name] = fill(text)
	}
	if t.keys != nil && t.keys.post == nil && len(t.claims.Audience) == 0 {
		// A public set of keys signs for everybody: without an audience anybody
		// can have a token made for something else.
		return errors.New("audience: is needed where the keys are public")
	}
	return open
}

// check holds the claims of a genuine token against what they must be.
func (t *jsonToken) check(r *request, std jwt.Claims, all map[string]any) error {
	mismatch := func(claim string) error {
		return &Error{Kind: Mismatch, Place: t.place.String(), Detail: "claim " + claim + " is not what it must be"}
	}
	if want := t.claims.Issuer; len(want) > 0 && !slices.Contains(want, std.Issuer) {
		return mismatch("iss")
	}
	if want := t.claims.Audience; len(want) > 0 && !slices.ContainsFunc(want, std.Audience.Contains) {
		return mismatch("aud")
	}
	for name, want := range t.claims.Equals {
		if fmt.Sprint(all[name]) != want {
			return mismatch(name)
		}
	}
	if name := t.claims.BodySHA256; name != "" {
		sum := sha256.Sum256(r.Body)
		if got, ok := all[name].(string); !ok || got != hex.EncodeToString(sum[:]) {
			return mismatch(name)
		}
	}
	return t.checkTime(r.Arrived, std)
}

func (t *jsonToken) checkTime(arrived time.Time, std jwt.Claims) error {
	stale := func(detail string) error {
		return &Error{Kind: Stale, Place: t.place.String(), Detail: detail}
	}
	if std.Expiry != nil && arrived.After(std.Expiry.Time().Add(clockSkew)) {
		return stale("the token had expired when it arrived")
	}
	if std.NotBefore != nil && arrived.Before(std.NotBefore.Time().Add(-clockSkew)) {
		return stale("the token was not valid yet when it arrived")
	}
	switch max := t.claims.MaxAge; {
	case max > 0 && std.IssuedAt == nil:
		return stale("the token doesn't say when it was made")
	case max > 0:
		if age := arrived.Sub(std.IssuedAt.Time()); age > max || age < -max {
			return stale(fmt.Sprintf("the token was made more than %s before or after it arrived", max))
		}
	case std.Expiry == nil && !t.claims.Timeless:
		return stale("the token never expires")
	}
	return nil
}
