package proxy_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/provider"
	"oncegate/verify"
)

// A batchSender writes batches as one provider does: the texts of items, and
// what stands around them. %s is an item's ID, or all items.
type batchSender struct {
	item, around string
	key          string // of an item
}

var batchSenders = map[string]batchSender{
	"sendgrid":   {`{"email":"a@b.example","event":"open","sg_event_id":"%s"}`, "[%s]\r\n", "%s"},
	"gocardless": {`{"id":"%s", "action":"created"}`, `{"events":[%s],"meta":{"webhook_id":"WB1"}}`, "%s"},
	"adyen": {`{"NotificationRequestItem":{"additionalData":{"hmacSignature":"@signature@"},"amount":{"currency":"EUR","value":1130},` +
		`"eventCode":"CAPTURE","merchantAccountCode":"Shop","pspReference":"%s","success":"true"}}`,
		`{"live":"false","notificationItems":[%s]}`, "Shop/CAPTURE/true/%s"},
	"hubspot": {`{"portalId":1,"occurredAt":1564113600000,"eventId":"%s","attemptNumber":0}`, "[%s]", "#1/%%-/%%-/#1564113600000/%%-/%s"},
	"xero": {`{"resourceId":"%s","eventDateUtc":"2017-06-21T01:15:39.902","eventType":"UPDATE","eventCategory":"CONTACT","tenantId":"t"}`,
		`{"events":[%s],"firstEventSequence":1,"lastEventSequence":2,"entropy":"x"}`, "t/CONTACT/UPDATE/2017-06-21T01:15:39.902/%s"},
	"line":       {`{"type":"message","webhookEventId":"%s"}`, `{"destination":"U1","events":[%s]}`, "U1/%s"},
	"quickbooks": {`{"specversion":"1.0","source":"intuit","id":"%s"}`, "[ %s ]", "intuit/%s"},
}

// between is what parts two items.
func (s batchSender) between() string {
	if strings.HasPrefix(s.item, "<") {
		return ""
	}
	return ","
}

// body is a batch of the items with these IDs.
func (s batchSender) body(ids ...string) string {
	items := make([]string, len(ids))
	for i, id := range ids {
		items[i] = fmt.Sprintf(s.item, id)
	}
	return fmt.Sprintf(s.around, strings.Join(items, s.between()))
}

// A presetRig is a rig with one route of a preset, whose provider it can play.
type presetRig struct {
	*rig
	yaml  string
	route *config.Route
}

func newPresetRig(t *testing.T, s store, name, more string) *presetRig {
	t.Helper()
	p, err := provider.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	yaml := "public_url: https://shop.example\nroutes:\n  shop:\n    path: /hook\n    provider: " + name + "\n    " + more + "\n"
	if key, err := verify.Generate(p.Verify); err == nil {
		yaml += fmt.Sprintf("    secrets: %q\n", key)
	}
	for name, param := range p.Params {
		yaml += fmt.Sprintf("    params: {%s: %q}\n", name, param.Example)
	}
	r := newRig(t, newApp(t), s, yaml)
	return &presetRig{r, yaml, r.load("namespace: shop\n" + yaml).Routes[0]}
}

// signed makes a request of a delivery, signed as the provider would.
func (r *presetRig) signed(body string) *http.Request {
	r.t.Helper()
	return r.complete(&delivery.Delivery{Method: "POST", Target: "/hook", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)})
}

func (r *presetRig) complete(d *delivery.Delivery) *http.Request {
	r.t.Helper()
	return r.completeWith(r.route.Verifier, d)
}

func (r *presetRig) completeWith(signer *verify.Verifier, d *delivery.Delivery) *http.Request {
	r.t.Helper()
	d, err := signer.Complete(d, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	req := r.post(d.Target, string(d.Body))
	req.Method, req.Header = d.Method, d.Header
	return req
}

func bodyOf(t *testing.T, req *http.Request) string {
	t.Helper()
	body, err := req.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBatchesOfProviders(t *testing.T) {
	for name, s := range batchSenders {
		t.Run("B13 "+name+", whole", func(t *testing.T) {
			r := newPresetRig(t, newMem(), name, "wait: 2s")
			r.expect(r.signed(s.body("e1", "e2")), 200, "fresh")
			for _, ids := range [][]string{{"e1", "e2"}, {"e2", "e1"}, {"e1"}, {"e2", "e2"}} {
				if got := r.expect(r.signed(s.body(ids...)), 200, "replay"); got.body != "answer 1" {
					t.Errorf("%v: answered %q", ids, got.body)
				}
			}
			req := r.signed(s.body("e2", "e3", "e3"))
			sent := bodyOf(t, req)
			r.expect(req, 200, "fresh")
			got := r.app.last(t)
			if got.body != sent {
				t.Errorf("the app got %q, want what was sent: %q", got.body, sent)
			}
			d := &delivery.Delivery{Method: got.method, Target: got.target, Header: got.header, Body: []byte(got.body), Arrived: time.Now()}
			if err := r.route.Verifier.Verify(t.Context(), d); err != nil {
				t.Errorf("to the app it is not genuine: %v", err)
			}
			r.expect(r.signed(s.body("e3", "e2", "e1")), 200, "replay")
			r.hits(2)
			if n := r.records(); n != 3 {
				t.Errorf("%d claims, want 3", n)
			}
			if n := r.counts(`oncegate_batch_repeats_total{route="shop"}`); n != "1" {
				t.Errorf("%s repeats were counted, want 1", n)
			}
		})
		t.Run("B13 "+name+", split", func(t *testing.T) {
			r := newPresetRig(t, newMem(), name, "batch: split\n    wait: 2s")
			first := r.signed(s.body("e1", "e2"))
			sent := bodyOf(t, first)
			r.expect(first, 200, "fresh")
			if got := r.app.last(t); got.body != sent || !strings.HasPrefix(got.header.Get("Oncegate-Event"), "shop:sha256-") {
				t.Errorf("the app got %q as %q, want all that was sent", got.body, got.header.Get("Oncegate-Event"))
			}
			r.expect(r.signed(s.body("e1", "e3", "e2")), 200, "fresh")
			got := r.app.last(t)
			want := bodyOf(t, r.signed(s.body("e3")))
			if strings.ReplaceAll(got.body, " ", "") != strings.ReplaceAll(want, " ", "") {
				t.Errorf("the app got %q, want %q", got.body, want)
			}
			if event := got.header.Get("Oncegate-Event"); event != fmt.Sprintf("shop:"+s.key, "e3") {
				t.Errorf("the app was told %q", event)
			}
			if got.length != int64(len(got.body)) {
				t.Errorf("Content-Length %d for %d bytes", got.length, len(got.body))
			}
			if name == "adyen" {
				if err := r.route.Verifier.Verify(t.Context(), &delivery.Delivery{Method: "POST", Target: "/hook", Header: got.header, Body: []byte(got.body), Arrived: time.Now()}); err != nil {
					t.Errorf("the item that is left is not genuine: %v", err)
				}
			}
			r.expect(r.signed(s.body("e4", "e4")), 200, "fresh")
			if got := r.app.last(t); strings.Count(got.body, `"e4"`) != 1 {
				t.Errorf("the app got %q, want the event once", got.body)
			}
			r.expect(r.signed(s.body("e4", "e3", "e2", "e1")), 200, "replay")
			r.hits(3)
			if !strings.Contains(r.log.String(), `"left_out":2`) {
				t.Error("the log does not say how many events were left out")
			}
		})
	}
}

// TestXMLBatches: each of a Salesforce message's notifications is claimed.
func TestXMLBatches(t *testing.T) {
	s := batchSender{
		item:   `<Notification><Id>%s</Id><sObject><Id>r</Id></sObject></Notification>`,
		around: `<soapenv:Envelope xmlns:soapenv="x"><soapenv:Body><notifications><OrganizationId>o</OrganizationId>%s</notifications></soapenv:Body></soapenv:Envelope>`,
	}
	r := newPresetRig(t, newMem(), "salesforce", "mode: enforce\n    verify: none")
	send := func(ids ...string) *http.Request { return r.post("/hook", s.body(ids...), "Content-Type", "text/xml") }
	r.expect(send("n1", "n2"), 200, "fresh")
	r.expect(send("n2", "n1"), 200, "replay")
	r.expect(send("n2"), 200, "replay")
	r.expect(send("n2", "n3"), 200, "fresh")
	r.expect(send(), 422, "unkeyed")
	r.hits(2)
	if n := r.records(); n != 3 {
		t.Errorf("%d claims, want 3", n)
	}
}

// splitRoute is a route whose batches are cut down to their new events.
const splitRoute = "key: [{json: /id}]\neach: /events\nbatch: split\nwait: 20s"

func eventsOf(ids ...string) string {
	return batchSender{item: `{"id":"%s"}`, around: `{"events":[%s]}`}.body(ids...)
}

func idsIn(t *testing.T, body string) (ids []string) {
	t.Helper()
	var b struct{ Events []struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	for _, e := range b.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestSplitBatches(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B13 an event that failed goes again, alone", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(splitRoute))
			r.expect(r.acme(eventsOf("e1")), 200, "fresh")
			r.app.say(500, "")
			r.expect(r.acme(eventsOf("e1", "e2")), 500, "failed")
			r.app.say(200, "")
			r.expect(r.acme(eventsOf("e2", "e1")), 200, "fresh")
			if got := r.app.last(t); got.body != eventsOf("e2") || got.header.Get("Oncegate-Attempt") != "2" {
				t.Errorf("the app got %q as attempt %q", got.body, got.header.Get("Oncegate-Attempt"))
			}
		})
		t.Run("B13 two that overlap, at once", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(splitRoute))
			arrived, release := r.app.hold(t)
			first := r.later(r.acme(eventsOf("e1", "e2")))
			<-arrived
			second := r.later(r.acme(eventsOf("e2", "e3")))
			r.inHand(2)
			release()
			if s := <-first; s.status != 200 || s.result != "fresh" {
				t.Errorf("the first: %d %q", s.status, s.result)
			}
			if s := <-second; s.status != 200 || s.result != "fresh" {
				t.Errorf("the second: %d %q", s.status, s.result)
			}
			if got := r.app.last(t); got.body != eventsOf("e3") {
				t.Errorf("the second brought %q, want what was new", got.body)
			}
		})
		t.Run("a coded body goes on as it came, or plain", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), acmeRoute(splitRoute))
			coded := func(ids ...string) string {
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				io.WriteString(w, eventsOf(ids...))
				w.Close()
				return b.String()
			}
			r.expect(r.acme(coded("e1"), "Content-Encoding", "gzip"), 200, "fresh")
			if got := r.app.last(t); got.body != coded("e1") || got.header.Get("Content-Encoding") != "gzip" {
				t.Error("a batch of which nothing was cut away was changed")
			}
			r.expect(r.acme(coded("e1", "e2"), "Content-Encoding", "gzip", "Content-Digest", "sha-256=:x:"), 200, "fresh")
			if got := r.app.last(t); got.body != eventsOf("e2") || len(got.header["Content-Encoding"])+len(got.header["Content-Digest"]) > 0 {
				t.Errorf("the app got %q with %v", got.body, got.header)
			}
		})
	})
	t.Run("B13 overlapping batches in two processes: each event runs once", func(t *testing.T) {
		s := newMem()
		a := newApp(t)
		var mu sync.Mutex
		ran := map[string]int{}
		a.answer(func(_ http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range idsIn(t, string(body)) {
				ran[id]++
			}
		})
		rigs := []*rig{newRig(t, a, s, acmeRoute(splitRoute)), newRig(t, a, s, acmeRoute(splitRoute))}
		var all sync.WaitGroup
		for i := range 60 {
			ids := make([]string, 1+rand.IntN(6))
			for k := range ids {
				ids[k] = fmt.Sprint("e", rand.IntN(20))
			}
			r := rigs[i%2]
			all.Go(func() {
				if got := r.send(r.acme(eventsOf(ids...))); got.status != 200 {
					t.Errorf("%v: %d %q %v", ids, got.status, got.result, got.err)
				}
			})
		}
		all.Wait()
		for id, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", id, n)
			}
		}
		if n := rigs[0].records(); n != len(ran) {
			t.Errorf("%d events, %d claims", len(ran), n)
		}
	})
	t.Run("B13 ten thousand events, some of them done", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(splitRoute))
		ids := make([]string, 10_000)
		for i := range ids {
			ids[i] = fmt.Sprint("e", i)
		}
		r.expect(r.acme(eventsOf(ids[:5000]...)), 200, "fresh")
		slices.Reverse(ids[2000:8000])
		began := time.Now()
		r.expect(r.acme(eventsOf(ids...)), 200, "fresh")
		took := time.Since(began)
		if got := idsIn(t, r.app.last(t).body); len(got) != 5000 || slices.ContainsFunc(got, func(id string) bool { return len(id) < 5 || id < "e5" }) {
			t.Errorf("the app got %d events", len(got))
		}
		r.expect(r.acme(eventsOf(ids...)), 200, "replay")
		r.expect(r.acme(eventsOf(append(ids, "e")...)), 400, "malformed")
		if took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}
