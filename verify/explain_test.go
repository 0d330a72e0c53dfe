package verify

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestExplainTime(t *testing.T) {
	spec := Spec{HMAC: "sha256", Header: []string{"X-Sig"}, Format: "t={time},v1={hex}", Signed: "{time}.{body}", Time: &Time{Unit: "s"}}
	v := mustCompile(t, spec, Options{Secrets: secrets("k")})
	d, err := v.Complete(post("{}"), arrived)
	if err != nil {
		t.Fatal(err)
	}
	d.Arrived = arrived.Add(time.Hour)
	trace := v.Explain(context.Background(), d)
	if e, ok := errors.AsType[*Error](trace.Err); !ok || e.Kind != Stale {
		t.Fatalf("%v", trace.Err)
	}
	if len(trace.Checks) != 1 || !trace.Checks[0].Fits || !trace.Checks[0].At.Equal(arrived.Truncate(time.Second)) || len(trace.Checks[0].Computed[0]) != 8 {
		t.Errorf("%+v", trace.Checks)
	}
}

func TestOffline(t *testing.T) {
	asks := 0
	o := Options{Params: map[string]string{}, Transport: roundTrip(func(*http.Request) (*http.Response, error) { asks++; return nil, errors.New("asked") })}
	for name, spec := range map[string]Spec{
		"a certificate": {RSA: "sha256", Header: []string{"X-Sig"}, Format: "{base64}", Signed: "{body}", Keys: &Keys{Certificate: "header:X-Cert", Hosts: []string{"keys.example.com"}}},
		"a verifier":    {HTTP: "https://keys.example.com/check"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := mustCompile(t, spec, o).Offline()
			if err != nil {
				t.Fatal(err)
			}
			d := post("{}")
			d.Header.Set("X-Sig", strings.Repeat("AAAA", 86))
			d.Header.Set("X-Cert", "https://keys.example.com/a.pem")
			trace := v.Explain(context.Background(), d)
			if e, ok := errors.AsType[*Error](trace.Err); !ok || e.Kind != Unavailable || !errors.Is(trace.Err, ErrOffline) {
				t.Errorf("%v", trace.Err)
			}
			if name == "a certificate" && (len(trace.Checks) != 1 || !trace.Checks[0].Asks || string(trace.Checks[0].Signed) != "{}") {
				t.Errorf("%+v", trace.Checks)
			}
		})
	}
	if asks > 0 {
		t.Errorf("somebody was asked %d times", asks)
	}
}
