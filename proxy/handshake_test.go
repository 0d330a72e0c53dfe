package proxy_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// A handshakeCase is what a provider sends that is no event, and what looks
// nearly like it.
type handshakeCase struct {
	method, target, body string
	header               map[string]string
	signed               bool
	word                 string // handshake, or none where it passes through
	// near are deliveries that are no handshakes, signed or not.
	near []nearly
}

type nearly struct {
	name   string
	change func(*handshakeCase)
	status int
	word   string
}

var jsonType = map[string]string{"Content-Type": "application/json"}

func unsigned(c *handshakeCase) { c.signed = false }

func handshakeCases() map[string]handshakeCase {
	body := func(text string) func(*handshakeCase) { return func(c *handshakeCase) { c.body = text } }
	return map[string]handshakeCase{
		"slack": {"POST", "/hook", `{"token":"t","type":"url_verification","challenge":"c1"}`, jsonType, true, "handshake", []nearly{
			{"unsigned", unsigned, 401, "unverified"},
			{"with an event's ID", body(`{"type":"url_verification","challenge":"c1","event_id":"Ev1"}`), 200, "fresh"},
		}},
		"zoom": {"POST", "/hook", `{"event":"endpoint.url_validation","payload":{"plainToken":"p"},"event_ts":1654503849680}`, jsonType, true, "handshake", []nearly{
			{"unsigned", unsigned, 401, "unverified"},
			{"without a token", body(`{"event":"endpoint.url_validation","payload":{}}`), 200, "fresh"},
		}},
		"meta": {"GET", "/hook?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=v", "", nil, false, "", nil},
		"amazon-sns": {"POST", "/hook", `{"Type":"SubscriptionConfirmation","MessageId":"m1","Token":"t","TopicArn":"arn:aws:sns:us-west-2:123456789012:MyTopic",` +
			`"Message":"You have chosen to subscribe","SubscribeURL":"https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription","Timestamp":"2012-04-26T20:45:04.751Z",` +
			`"SignatureVersion":"2","Signature":"@signature@","SigningCertURL":"https://sns.us-west-2.amazonaws.com/cert.pem"}`,
			map[string]string{"Content-Type": "text/plain; charset=UTF-8"}, true, "handshake", []nearly{
				{"unsigned", unsigned, 503, "unverified"}, // SNS takes every 4xx for delivered
				{"of another topic", func(c *handshakeCase) { c.body = strings.ReplaceAll(c.body, "MyTopic", "Theirs") }, 503, "unverified"},
			}},
		"cloudevents": {"OPTIONS", "/hook", "", map[string]string{"WebHook-Request-Origin": "events.example"}, false, "", nil},
		"asana": {"POST", "/hook", `{}`, map[string]string{"Content-Type": "application/json", "X-Hook-Secret": "s"}, false, "handshake", []nearly{
			{"with an event", body(`{"events":[{"action":"changed"}]}`), 401, "unverified"},
			{"with events that PHP reads from an object", body(`{"events":{"a":{"action":"changed"}}}`), 401, "unverified"},
			{"with an event in a form that is JSON too", func(c *handshakeCase) {
				c.body = `{"a":"&payload={}&"}`
				c.header = map[string]string{"Content-Type": "application/x-www-form-urlencoded", "X-Hook-Secret": "s"}
			}, 401, "unverified"},
			{"with an event in the query", func(c *handshakeCase) { c.target = "/hook?events[0][action]=deleted" }, 401, "unverified"},
			{"compressed", func(c *handshakeCase) {
				c.body = "\x01\x02\x00\xfd\xff{}" // as deflate has it
				c.header = map[string]string{"Content-Type": "application/json", "Content-Encoding": "deflate", "X-Hook-Secret": "s"}
			}, 401, "unverified"},
			{"without the secret", func(c *handshakeCase) { c.header = jsonType }, 401, "unverified"},
			{"with a signature that is none", func(c *handshakeCase) {
				c.header = map[string]string{"Content-Type": "application/json", "X-Hook-Secret": "s", "X-Hook-Signature": strings.Repeat("00", 32)}
			}, 401, "unverified"},
			{"a signed heartbeat", func(c *handshakeCase) { c.header, c.body, c.signed = jsonType, `{"events":[]}`, true }, 200, "handshake"},
			{"an unsigned heartbeat", func(c *handshakeCase) { c.header, c.body = jsonType, `{"events":[]}` }, 401, "unverified"},
		}},
		"xero": {"POST", "/hook", `{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3"}`, jsonType, true, "handshake", []nearly{
			{"signed wrong, as Xero does on purpose", func(c *handshakeCase) {
				c.signed, c.header = false, map[string]string{"Content-Type": "application/json", "X-Xero-Signature": strings.Repeat("A", 43) + "="}
			}, 401, "unverified"},
			{"no list of events", body(`{"events":null}`), 422, "unkeyed"},
		}},
		"discord-interactions": {"POST", "/hook", `{"id":"1","application_id":"2","type":1,"version":1}`, map[string]string{"Content-Type": "application/json", "X-Signature-Timestamp": "1700000000"}, true, "handshake", []nearly{
			{"signed wrong, as Discord does on purpose", func(c *handshakeCase) {
				c.signed = false
				c.header = map[string]string{"Content-Type": "application/json", "X-Signature-Timestamp": "1700000000", "X-Signature-Ed25519": strings.Repeat("00", 64)}
			}, 401, "unverified"},
			{"a command", body(`{"id":"3","application_id":"2","type":2}`), 200, "fresh"},
		}},
		"discord-events": {"POST", "/hook", `{"version":1,"application_id":"2","type":0}`, map[string]string{"Content-Type": "application/json", "X-Signature-Timestamp": "1700000000"}, true, "handshake", []nearly{
			{"unsigned", unsigned, 401, "unverified"},
			{"an event", body(`{"version":1,"application_id":"2","type":1,"event":{"type":"x"}}`), 200, "fresh"},
		}},
	}
}

func TestHandshakesOfProviders(t *testing.T) {
	for name, c := range handshakeCases() {
		t.Run("B75 "+name, func(t *testing.T) {
			r := newPresetRig(t, newMem(), name, "wait: 1s")
			sign := r.signer(name)
			r.app.answer(func(w http.ResponseWriter, req *http.Request) {
				io.WriteString(w, "challenge "+req.URL.Query().Get("hub.challenge"))
			})
			send := func(c *handshakeCase) (answered, *http.Request) {
				d := &delivery.Delivery{Method: c.method, Target: c.target, Header: http.Header{}, Body: []byte(c.body)}
				for name, value := range c.header {
					d.Header.Set(name, value)
				}
				req := r.post(d.Target, c.body)
				req.Method, req.Header = c.method, d.Header
				if c.signed {
					req = r.completeWith(sign, d)
				}
				return r.send(req), req
			}
			for range 3 {
				got, req := send(&c)
				if got.status != 200 || got.result != c.word || !strings.HasPrefix(got.body, "challenge ") {
					t.Fatalf("got %d %q %q", got.status, got.result, got.body)
				}
				if app := r.app.last(t); app.method != c.method || app.target != c.target || app.body != bodyOf(t, req) {
					t.Errorf("the app got %s %s %q", app.method, app.target, app.body)
				}
			}
			r.hits(3)
			if n := r.records(); n != 0 {
				t.Errorf("%d claims were made", n)
			}
			for _, n := range c.near {
				other := c
				other.header = maps.Clone(c.header)
				n.change(&other)
				if got, _ := send(&other); got.status != n.status || got.result != n.word {
					t.Errorf("%s: got %d %q, want %d %q", n.name, got.status, got.result, n.status, n.word)
				}
			}
		})
	}
}

// Xero tries a wrong signature before it turns a webhook on, and wants a 401 with
// nothing in it.
func TestBareRefusals(t *testing.T) {
	for provider, bare := range map[string]bool{"xero": true, "linear": false} {
		t.Run("B75 "+provider, func(t *testing.T) {
			r := newPresetRig(t, newMem(), provider, "wait: 1s")
			got := r.send(r.post("/hook", `{"events":[]}`, "Content-Type", "application/json", "X-Xero-Signature", strings.Repeat("A", 43)+"="))
			if got.status != 401 || got.result != "unverified" || (got.body == "") != bare {
				t.Errorf("got %d %q %q", got.status, got.result, got.body)
			}
		})
	}
}

// signer is what signs as the provider: the route's own verifier, which holds
// the key, or, for SNS, one that stands in for Amazon.
func (r *presetRig) signer(name string) *verify.Verifier {
	r.t.Helper()
	if name != "amazon-sns" {
		return r.route.Verifier
	}
	c := r.load("namespace: shop\n" + r.yaml)
	var signs *verify.Verifier
	c.Routes[0].Verifier, signs = standIn(r.t, r.route.Preset.Verify, map[string]string{"topic_arn": r.route.Preset.Params["topic_arn"].Example})
	if err := r.handler.Reload(c); err != nil {
		r.t.Fatal(err)
	}
	return signs
}

// standIn makes the keys of a provider that signs with a certificate: a verifier
// that fetches them, and one that signs.
func standIn(t testing.TB, specs []verify.Spec, params map[string]string) (checks, signs *verify.Verifier) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	page := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	if checks, err = verify.Compile(specs, verify.Options{Params: params, Transport: keyServer(page)}); err != nil {
		t.Fatal(err)
	}
	spec := specs[0]
	if len(spec.Any) > 0 {
		spec = spec.Any[0]
	}
	spec.Keys = nil
	signs, err = verify.Compile([]verify.Spec{spec}, verify.Options{Params: params, Secrets: func() ([]string, error) {
		return []string{string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return checks, signs
}

// keyServer answers every question for a key with one page.
type keyServer []byte

func (k keyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(k)), Request: req}, nil
}
