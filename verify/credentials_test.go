package verify

import (
	"slices"
	"testing"
)

func TestCredentials(t *testing.T) {
	token := Spec{Token: true, Header: []string{"x-gitlab-token"}}
	for name, c := range map[string]struct {
		spec Spec
		want []string
	}{
		"token":     {token, []string{"X-Gitlab-Token"}},
		"basic":     {Spec{Basic: true, Secrets: []string{"user:password"}}, []string{"Authorization"}},
		"in a list": {Spec{Any: []Spec{token, hub(), token}}, []string{"X-Gitlab-Token"}},
		"query":     {Spec{Token: true, Query: "code"}, nil},
		"signature": {hub(), nil},
		"jwt":       {Spec{JWT: "HS256", Header: []string{"X-Token"}, Claims: &Claims{Timeless: true}}, []string{"X-Token"}},
	} {
		t.Run("B38 "+name, func(t *testing.T) {
			v := mustCompile(t, c.spec, Options{Secrets: secrets("s3cret-of-some-length-for-hs256-keys")})
			if got := v.Credentials(); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if (*Verifier)(nil).Credentials() != nil {
		t.Error("a route that isn't verified has some")
	}
}
