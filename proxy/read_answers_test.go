package proxy_test

import (
	"io"
	"net/http"
	"strconv"
	"testing"

	"oncegate/internal/delivery"
)

// TestAnswersThatAreRead: what a provider reads in an answer comes from the app,
// and a duplicate gets it byte by byte.
func TestAnswersThatAreRead(t *testing.T) {
	const soap = `<?xml version="1.0" encoding="UTF-8"?>` + "\r\n" + `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><notificationsResponse xmlns="http://soap.sforce.com/2005/09/outbound"><Ack>true</Ack></notificationsResponse></soapenv:Body></soapenv:Envelope>`
	for _, c := range []struct {
		preset, more string
		status       int
		kind, body   string
	}{
		{"adyen", "", 200, "text/plain; charset=UTF-8", "[accepted]"},
		{"salesforce", "mode: enforce\n    verify: none", 200, "text/xml; charset=utf-8", soap},
		{"telegram", "", 200, "application/json", `{"method":"sendMessage","chat_id":1111111,"text":"caf\u00e9 \/ ☕"}` + "\n"},
		{"twilio", "", 200, "text/xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Message>Hi</Message></Response>"},
		{"twilio-voice", "", 200, "application/xml", "<Response><Say>Hi</Say></Response>"},
		{"dropbox-sign", "", 200, "text/html; charset=UTF-8", "Hello API Event Received"},
		{"slack", "", 200, "application/json; charset=utf-8", `{"response_type":"in_channel","text":"ok"}`},
		{"discord-interactions", "", 200, "application/json", `{"type":4,"data":{"content":"ok"}}`},
		{"discord-events", "", 204, "", ""},
		{"xero", "", 200, "", ""},
	} {
		t.Run(c.preset, func(t *testing.T) {
			r := newPresetRig(t, newMem(), c.preset, "patience: 30s\n    wait: 20s\n    "+c.more)
			arrived, open := make(chan bool, 1), make(chan bool)
			r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
				arrived <- true
				<-open
				w.Header()["Content-Type"] = nil // none of Go's own
				if c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				w.Header().Set("Set-Cookie", "laravel_session=secret")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			sample := func() *http.Request {
				d := r.route.Preset.Delivery("/hook")
				if r.route.Verifier != nil {
					return r.complete(d)
				}
				return r.unsignedOf(d)
			}
			first := r.later(sample())
			<-arrived
			second := r.later(sample())
			r.inHand(2)
			close(open)
			check := func(got answered, result string) {
				t.Helper()
				length := strconv.Itoa(len(c.body))
				if c.status == 204 {
					length = ""
				}
				if got.err != nil || got.status != c.status || !is(got.result, result) || got.body != c.body ||
					got.header.Get("Content-Type") != c.kind || got.header.Get("Content-Length") != length {
					t.Errorf("%s: got %d %q %q %v (%v)", result, got.status, got.result, got.body, got.header, got.err)
				}
				if cookie := got.header.Get("Set-Cookie"); (cookie != "") != (result == "fresh") {
					t.Errorf("%s: the cookie is %q", result, cookie)
				}
			}
			check(<-first, "fresh")
			check(<-second, "waited")
			for range 2 {
				check(r.send(sample()), "replay")
			}
			r.hits(1)
		})
	}
}

// unsignedOf makes a request of a delivery that needs no signature.
func (r *presetRig) unsignedOf(d *delivery.Delivery) *http.Request {
	r.t.Helper()
	req := r.post(d.Target, string(d.Body))
	req.Method, req.Header = d.Method, d.Header
	return req
}
