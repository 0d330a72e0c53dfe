package proxy_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/evidence"
	"oncegate/internal/telemetry"
	"oncegate/lock"
	"oncegate/lock/memlock"
	"oncegate/proxy"
)

// kept is where a rig's evidence goes.
type kept struct {
	evidence.Store
	r    *evidence.Recorder
	mu   sync.Mutex // guards rows
	rows map[evidence.ID]evidence.Entry
}

func (k *kept) recorder(t testing.TB, log *slog.Logger) *evidence.Recorder {
	k.r = evidence.NewRecorder(evidence.Options{Namespace: "shop", Store: k, Retention: time.Hour, Log: log})
	t.Cleanup(func() { k.r.Close(context.Background()) })
	return k.r
}

func (k *kept) Write(_ context.Context, entries []evidence.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range entries {
		k.rows[e.ID] = e
	}
	return nil
}

func (k *kept) Purge(context.Context, string, time.Time, int) (int, error) { return 0, nil }

// find waits until there is evidence of so many deliveries, and returns it by
// result.
func (k *kept) find(t testing.TB, deliveries int) map[string]evidence.Entry {
	t.Helper()
	found := map[string]evidence.Entry{}
	eventually(t, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		n := 0
		for _, e := range k.rows {
			n += e.Count
			found[e.Result] = e
		}
		return n >= deliveries
	})
	return found
}

func (k *kept) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.rows)
}

// text is all that evidence holds, samples of what was refused included.
func (k *kept) text(t testing.TB) string {
	t.Helper()
	k.r.Close(t.Context()) // writes what is left; nothing is written afterwards
	k.mu.Lock()
	defer k.mu.Unlock()
	text := fmt.Sprintf("%+v", k.r.Refused())
	for _, e := range k.rows {
		row, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text += string(row)
		if e.Answer != nil && e.AppStatus >= 300 { // which JSON has in base64; of a 2xx it is what the claim has
			text += string(e.Answer.Body)
		}
	}
	return text
}

func TestEvidence(t *testing.T) {
	t.Run("B72 each delivery of an event, with its facts", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "trusted_proxies: 127.0.0.1\n"+acmeRoute(jsonID+"\npatience: 1ns"))
		body := `{"id":"evt_1"}`
		from := func(more ...string) *http.Request {
			return r.acme(body, append(more, "X-Forwarded-For", "203.0.113.9, 192.0.2.7")...)
		}
		r.expect(from(), 200, "fresh")
		r.expect(from("X-Slack-Retry-Num", "2", "X-Slack-Retry-Reason", "http_timeout"), 200, "replay")
		r.expect(r.post("/hooks/acme", body, "X-Sig", "forged"), 401, "unverified")
		found := r.kept.find(t, 2)
		sum := sha256.Sum256([]byte(body))
		fresh, replay := found["fresh"], found["replay"]
		if fresh.Key != lock.KeyOf("shop", "acme", "evt_1") || fresh.Text != "evt_1" || fresh.Remote != "192.0.2.7" || fresh.Route != "acme" ||
			fresh.Attempt != 1 || fresh.AppStatus != 200 || fresh.Status != 200 || fresh.Duplicate || fresh.Payload != hex.EncodeToString(sum[:]) || fresh.Total == 0 {
			t.Errorf("%+v", fresh)
		}
		if !replay.Duplicate || replay.Late || replay.AppStatus != 0 || replay.Retry != "x-slack-retry-num: 2, x-slack-retry-reason: http_timeout" {
			t.Errorf("%+v", replay)
		}
		if n := r.kept.len(); n != 2 {
			t.Errorf("%d rows: a forged delivery left a trace", n)
		}
		if refused := r.kept.r.Refused(); len(refused) != 1 || refused[0].Result != "unverified" || refused[0].Remote != "127.0.0.1" {
			t.Errorf("refused: %+v", refused)
		}
		if n := r.counts(`oncegate_slow_answers_total{route="acme"}`); n != "1" {
			t.Errorf("%s answers were slow", n)
		}
	})
	t.Run("what the app answered in vain", func(t *testing.T) {
		a := newApp(t)
		r := newRig(t, a, newMem(), acmeRoute(jsonID))
		a.say(500, "no")
		r.expect(r.acme(`{"id":"evt_1"}`), 500, "failed")
		a.say(200, "yes")
		r.expect(r.acme(`{"id":"evt_1"}`), 200, "fresh")
		found := r.kept.find(t, 2)
		if failed, fresh := found["failed"], found["fresh"]; failed.AppStatus != 500 || !fresh.SecondRun || fresh.Attempt != 2 {
			t.Errorf("%+v, then %+v", failed, fresh)
		}
	})
}

// What a hostile sender chooses makes no series: names of routes, keys and
// addresses do not become labels.
func TestCardinality(t *testing.T) {
	r := newRig(t, newApp(t), newMem(), "trusted_proxies: 127.0.0.1\n"+acmeRoute(jsonID))
	series := func() int { return strings.Count(r.scrape(), "\noncegate_") }
	deliver := func(i int) {
		name := fmt.Sprintf("evil-%d", i)
		r.send(r.acme(`{"id":"`+name+`"}`, "X-Forwarded-For", fmt.Sprintf("10.0.%d.%d", i/250, i%250), "X-Slack-Retry-Num", name))
		r.send(r.post("/hooks/acme", name, "X-Sig", name))
		r.send(r.post("/"+name, name))
		odd := r.post("/hooks/acme", name)
		odd.Method = "M" + fmt.Sprint(i)
		r.send(odd)
	}
	deliver(0)
	r.inHand(0)
	before := series()
	for i := 1; i < 100; i++ {
		deliver(i)
	}
	r.inHand(0)
	if after := series(); after > before {
		t.Errorf("%d series, and then %d", before, after)
	}
	if strings.Contains(r.scrape(), "evil") {
		t.Error("a sender's word is in a label")
	}
}

func TestRerun(t *testing.T) {
	keep := func(record string) (*rig, []byte) {
		r := newRig(t, newApp(t), newMem(), strings.Replace(stripeRoute, "app_limit", "record: "+record+", redact: [X-Secret], app_limit", 1))
		req := r.stripe(`{"id":"evt_1","card":"4242"}`)
		req.Header.Set("X-Secret", "CANARY")
		req.Header.Set("Cookie", "CANARY")
		req.Header.Set("X-Other", "seen")
		req.Header.Set("X-Bytes", "caf\xe9 \u00fc")
		r.expect(req, 200, "fresh")
		records, err := r.store.Read(t.Context(), []lock.Key{lock.KeyOf("shop", "stripe", "evt_1")})
		if err != nil {
			t.Fatal(err)
		}
		request, err := lock.Unseal(records[0].Request)
		if err != nil {
			t.Fatal(err)
		}
		return r, request
	}
	t.Run("what was kept goes the way of a delivery, signed anew", func(t *testing.T) {
		r, request := keep("full")
		if text := string(request); strings.Contains(text, "CANARY") || !strings.Contains(text, "4242") || !strings.Contains(text, "seen") {
			t.Errorf("kept when done: %s", text)
		}
		if err := r.handler.CanRerun(lock.KeyOf("shop", "stripe", "evt_1"), request); err != nil {
			t.Error(err)
		}
		out, err := r.handler.Rerun(t.Context(), "stripe", request)
		if err != nil || out.Result != telemetry.ResultReplay {
			t.Errorf("of a done event: %+v, %v", out, err)
		}
		word := lock.Word{Verb: lock.VerbRerun, Key: lock.KeyOf("shop", "stripe", "evt_1"), Who: "alice", Why: "lost", Retention: time.Hour}
		records, err := r.store.Read(t.Context(), []lock.Key{word.Key})
		if err != nil {
			t.Fatal(err)
		}
		word.Version = records[0].Version
		told := lock.Decide(t.Context(), r.store, []lock.Word{word})
		if told[0].Err != nil {
			t.Fatal(told[0].Err)
		}
		out, err = r.handler.Rerun(t.Context(), "stripe", told[0].Request)
		if err != nil || out.Result != telemetry.ResultFresh || out.Attempt != 2 || out.Status != 200 || !out.SecondRun {
			t.Errorf("%+v, %v", out, err)
		}
		r.hits(2)
		if got := r.app.last(t).header.Get("X-Bytes"); got != "caf\xe9 \u00fc" {
			t.Errorf("B17: bytes that are no UTF-8 came as %q", got)
		}
		r.expect(r.stripe(`{"id":"evt_1","card":"4242"}`), 200, "replay")
	})
	t.Run("headers can't be sent again", func(t *testing.T) {
		r, request := keep("headers")
		if text := string(request); strings.Contains(text, "4242") || strings.Contains(text, "CANARY") || !strings.Contains(text, "seen") {
			t.Errorf("kept when done: %s", text)
		}
		if _, err := r.handler.Rerun(t.Context(), "stripe", request); err == nil {
			t.Error("it was sent")
		}
		r.hits(1)
	})
	t.Run("unsettled is dropped when done", func(t *testing.T) {
		if _, request := keep("unsettled"); request != nil {
			t.Errorf("kept: %s", request)
		}
	})
	t.Run("what no route takes is refused", func(t *testing.T) {
		r, request := keep("full")
		for _, bad := range [][]byte{nil, []byte("{}\n"), []byte(`{"method":"POST","target":"/elsewhere"}` + "\n"), request[:20]} {
			if _, err := r.handler.Rerun(t.Context(), "stripe", bad); err == nil {
				t.Errorf("%q was sent", bad)
			}
		}
		if err := r.handler.CanRerun(lock.KeyOf("shop", "other", "evt_1"), request); err == nil {
			t.Error("under another scope")
		}
	})
	t.Run("what would not be this event any more is refused before its claim is opened", func(t *testing.T) {
		const orders = "routes:\n  orders: {path: /orders, provider: idempotency-key, caller: {header: Authorization}, record: full}\n"
		r := newRig(t, newApp(t), newMem(), orders)
		r.expect(r.post("/orders", "{}", "Authorization", "Bearer client-1", "Idempotency-Key", "k"), 200, "fresh")
		of := func(scope string) (lock.Key, []byte) {
			done := r.claim(scope)
			request, err := lock.Unseal(done.Request)
			if err != nil || request == nil {
				t.Fatalf("no request was kept: %v", err)
			}
			return done.Key, request
		}
		if err := r.handler.CanRerun(of("orders")); err == nil {
			t.Error("the caller is not known any more, and so the key")
		}
		const hooks = "\nrecord: full"
		r = newRig(t, newApp(t), newMem(), acmeRoute(jsonID+hooks))
		r.expect(r.acme(`{"id":"evt_1","number":1}`), 200, "fresh")
		key, request := of("acme")
		if err := r.handler.CanRerun(key, request); err != nil {
			t.Error(err)
		}
		if err := r.handler.Reload(r.load("namespace: shop\n" + acmeRoute("key: [{json: /id}, {json: /number}]"+hooks))); err != nil {
			t.Fatal(err)
		}
		if err := r.handler.CanRerun(key, request); err == nil {
			t.Error("it has another key now")
		}
	})
}

// BenchmarkReplay compares the way of a replay without evidence and with it, in
// one run.
func BenchmarkReplay(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("evidence=%v", with), func(b *testing.B) {
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
			defer app.Close()
			log := slog.New(slog.DiscardHandler)
			o := telemetry.Options{Log: log}
			if with {
				k := &kept{rows: map[evidence.ID]evidence.Entry{}}
				o.Evidence = k.recorder(b, log).Record
			}
			c := (&rig{t: b, url: app.URL}).load("namespace: shop\n" + stripeRoute)
			h, stop := handlerOf(b, c, o)
			defer stop()
			body := `{"id":"evt_1"}`
			signature := stripeSignature(secret, body, time.Now())
			deliver := func() int {
				req := httptest.NewRequest("POST", "/stripe/webhook", strings.NewReader(body))
				req.Header.Set("Stripe-Signature", signature)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, req)
				return w.Code
			}
			if deliver() != 200 {
				b.Fatal("not fresh")
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if deliver() != 200 {
						b.Error("not replayed")
					}
				}
			})
		})
	}
}

// handlerOf returns a handler on a store in memory, with a memory of done claims.
func handlerOf(b testing.TB, c *config.Config, o telemetry.Options) (h *proxy.Handler, stop func()) {
	b.Helper()
	tel, err := telemetry.New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	gate := lock.NewGate(memlock.New(), lock.Options{Memory: 1 << 20})
	if h, err = proxy.New(proxy.Options{Config: c, Gate: gate, Telemetry: tel, Log: o.Log}); err != nil {
		b.Fatal(err)
	}
	return h, func() {
		h.Cut()
		if err := gate.Close(context.Background()); err != nil {
			b.Error(err)
		}
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	}
}
