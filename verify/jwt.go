package verify

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// jsonToken is a JSON Web Token in a header. Its signature covers its claims; the
// body only where a claim holds the body's hash.
type jsonToken struct {
	place  place
	before string
	alg    jose.SignatureAlgorithm
	claims Claims
	shared *keyring[[]byte]    // HS256
	public *keyring[publicKey] // RS256 and ES256 with a configured key
	keys   *keySource
}

// clockSkew is what a token's exp, nbf and iat are allowed, where the scheme
// says nothing.
const clockSkew = time.Minute

func (c *compiler) jwt(field string, s *Spec, lenient bool) scheme {
	t := &jsonToken{alg: jose.SignatureAlgorithm(s.JWT)}
	var err error
	if t.place, err = onePlace(s.Header, "", "", "", ""); c.note(field, err) && t.place.kind == "" {
		c.fault(field, "say in which header the token stands")
	}
	if s.Format != "" {
		var ok bool
		if t.before, ok = strings.CutSuffix(s.Format, "{jwt}"); !ok {
			c.fault(field+".format", "has to end in {jwt}")
		}
	}
	switch {
	case s.Keys != nil && s.JWT != "HS256":
		t.keys, err = c.keySource(s.Keys)
		if err == nil && t.keys.url == "" {
			err = errors.New("keys.url: is needed for jwt")
		}
	case s.JWT == "HS256":
		decode, decodeErr := hmacKey(s.Encoding)
		t.shared, err = &keyring[[]byte]{source: c.secrets(s), decode: padded(decode), lenient: lenient}, decodeErr
	case s.JWT == "RS256" || s.JWT == "ES256":
		word := map[string]string{"RS256": "rsa", "ES256": "ecdsa"}[s.JWT]
		decode, decodeErr := publicKeyDecoder(s.Encoding, word)
		t.public, err = &keyring[publicKey]{source: c.secrets(s), decode: decode, lenient: lenient}, decodeErr
	default:
		err = fmt.Errorf("%q is none of HS256, RS256, ES256", s.JWT)
	}
	if !c.note(field+".jwt", err) {
		return t
	}
	c.note(field+".secrets", t.ready())
	c.note(field+".claims", t.setClaims(s.Claims, c.o.Params))
	return t
}

// padded makes a key that is shorter than its hash as long, with zeros. HMAC does
// the same (RFC 2104, section 2), so the signature is the provider's; the library
// refuses the key otherwise, and with it every genuine delivery.
func padded(decode func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(text string) ([]byte, error) {
		key, err := decode(text)
		if missing := sha256.Size - len(key); err == nil && missing > 0 {
			key = append(slices.Clip(key), make([]byte, missing)...)
		}
		return key, err
	}
}

func (t *jsonToken) plausible(h http.Header) error {
	_, err := t.parse(h)
	return err
}

func (t *jsonToken) parse(h http.Header) (*jwt.JSONWebToken, error) {
	text, err := t.place.one(&scope{r: &request{Delivery: headerOnly(h)}})
	if err != nil {
		return nil, err
	}
	compact, ok := strings.CutPrefix(text, t.before)
	if !ok {
		return nil, &Error{Kind: Malformed, Place: t.place.String(), Detail: "not of the known form"}
	}
	token, err := jwt.ParseSigned(compact, []jose.SignatureAlgorithm{t.alg})
	for part := range strings.SplitSeq(compact, ".") {
		// One token has one text.
		_, strict := base64.RawURLEncoding.Strict().DecodeString(part)
		err = errors.Join(err, strict)
	}
	if err != nil {
		return nil, &Error{Kind: Malformed, Place: t.place.String(), Detail: "no token of algorithm " + string(t.alg)}
	}
	return token, nil
}

func (t *jsonToken) verify(ctx context.Context, r *request) error {
	token, err := t.parse(r.Header)
	if err != nil {
		return err
	}
	keys, err := t.candidates(ctx, token)
	if err != nil {
		return err
	}
	for _, key := range keys {
		var std jwt.Claims
		var all map[string]any
		if token.Claims(key, &std, &all) == nil {
			return t.check(r, std, all)
		}
	}
	return &Error{Kind: Mismatch, Place: t.place.String(), Detail: "no key fits the token"}
}

func (t *jsonToken) candidates(ctx context.Context, token *jwt.JSONWebToken) (keys []any, err error) {
	var public []crypto.PublicKey
	switch {
	case t.keys != nil:
		public, err = t.keys.byID(ctx, token.Headers[0].KeyID)
		for _, key := range public {
			keys = append(keys, key)
		}
		return keys, err
	case t.shared != nil:
		var secrets [][]byte
		secrets, err = t.shared.get()
		for _, key := range secrets {
			keys = append(keys, key)
		}
	default:
		var configured []publicKey
		configured, err = t.public.get()
		for _, key := range configured {
			keys = append(keys, key.public)
		}
	}
	if err != nil {
		err = &Error{Kind: Unavailable, Place: "secrets", Err: err}
	}
	return keys, err
}

// sign makes a token, where the key is held.
func (t *jsonToken) sign(s *signing) error {
	if t.keys != nil {
		return ErrCannotSign
	}
	key, err := t.signingKey()
	if err != nil {
		return err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: t.alg, Key: key}, nil)
	if err != nil {
		return fmt.Errorf("verify: signing a token: %w", err)
	}
	claims := map[string]any{"iat": s.now.Unix(), "exp": s.now.Add(time.Hour).Unix()}
	if t.claims.Timeless {
		claims = map[string]any{}
	}
	for name, text := range t.claims.Equals {
		claims[name] = text
	}
	if len(t.claims.Issuer) > 0 {
		claims["iss"] = t.claims.Issuer[0]
	}
	if len(t.claims.Audience) > 0 {
		claims["aud"] = t.claims.Audience[0]
	}
	if name := t.claims.BodySHA256; name != "" {
		sum := sha256.Sum256(s.d.Body)
		claims[name] = hex.EncodeToString(sum[:])
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return fmt.Errorf("verify: signing a token: %w", err)
	}
	s.header(t.place.arg, t.before+text)
	return nil
}

func (t *jsonToken) signingKey() (any, error) {
	if t.shared != nil {
		keys, err := t.shared.get()
		if err != nil || len(keys) == 0 {
			return nil, errors.Join(ErrCannotSign, err)
		}
		return keys[0], nil
	}
	keys, err := t.public.get()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if key.private != nil {
			return key.private, nil
		}
	}
	return nil, ErrCannotSign
}

func (t *jsonToken) ready() error {
	switch {
	case t.keys != nil:
		return nil
	case t.shared != nil:
		_, err := t.shared.get()
		return err
	}
	_, err := t.public.get()
	return err
}

func (t *jsonToken) judges() bool { return !t.claims.Timeless }

func (t *jsonToken) accepts(secret string) error {
	switch {
	case t.keys != nil:
		return nil
	case t.shared != nil:
		_, err := t.shared.decode(secret)
		return err
	}
	_, err := t.public.decode(secret)
	return err
}
