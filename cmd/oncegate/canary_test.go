package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A canary is a word that somebody put in, and that is looked for in all that comes
// out. Those of the event that fails have another beginning, since its request is
// kept until somebody decides.
func canary(word string) string  { return "CANARY-" + word + "." }
func failing(word string) string { return "CANARYF-" + word + "." }

// What is kept of a request that is kept, but for its body.
var heads = []string{"HEADER", "QUERY", "AGENT", "TRACE", "STATE"}

// What is kept of the body.
var bodies = []string{"BODY", "JSONKEY", "TAG"}

// B72 What a delivery, its answer, the configuration and the environment hold gets
// into no log, span, metric, evidence, page, file or dump beyond what record allows;
// and what is forgotten is gone from all of them.
func TestCanaries(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"none", "unsettled", "headers", "full"} {
		t.Run("record "+record, func(t *testing.T) {
			t.Parallel()
			app := httptest.NewServer(http.HandlerFunc(canaryApp))
			defer app.Close()
			collector := newCollector(t)
			s := serveCanaries(t, app.URL, collector.URL, "record: "+record)
			s.sendCanaries(t, app.URL)
			s.evidenced(t, 4)

			out := s.sinks(t)
			s.decideAll(t)
			s.signal(t, syscall.SIGTERM)
			s.code(t)
			out["the log"], out["stderr"] = s.stdout.String(), s.errs.String()
			out["the spans"], out["the exported metrics"] = collector.said()

			answered := []string{canary("ANSWER"), canary("LINK"), failing("LINK")}
			if record == "unsettled" || record == "full" {
				answered = append(answered, failing("ERROR"))
			}
			kept := []string{canary("TAG"), canary("ANSWER"), canary("LINK"), "CANARYF-"} // of what is unknown, all is kept
			if record == "headers" || record == "full" {
				kept = append(kept, words(canary, heads)...)
			}
			if record == "full" {
				kept = append(kept, words(canary, bodies)...)
				kept = append(kept, canary("FORM"))
			}
			tags := []string{canary("TAG"), failing("TAG")}
			shown := append(slices.Clone(tags), canary("LINK"), failing("LINK"))
			allowed := map[string][]string{
				"claims ls": tags, "claims show": shown, "claims show --body": append(slices.Clone(shown), answered...),
				"GET /v1/claims": tags, "GET /v1/events": shown, "GET /v1/events?body=true": append(slices.Clone(shown), answered...),
				"the files of evidence": answered, "the table of claims": kept,
			}
			for where, must := range map[string][]string{
				"claims ls": tags, "claims show --body": answered, "GET /v1/events?body=true": answered, "the files of evidence": answered, "the table of claims": kept,
				"the log": {"evt_kept"}, "the spans": {"evt_kept"}, "the metrics": {`result="failed"`}, "the exported metrics": {"oncegate.deliveries"},
				"oncegate doctor": {"ok"}, "GET /v1/refused": {"unverified"},
			} {
				for _, word := range must {
					if !strings.Contains(out[where], word) {
						t.Errorf("%s lacks %s", where, word)
					}
				}
			}
			for where, text := range out {
				none(t, where, text, allowed[where]...)
			}
			for file, text := range s.files(t) {
				none(t, file+", after all was forgotten", text)
				for _, key := range []string{"evt_kept", "evt_failed", "evt_form"} {
					if strings.Contains(text, key) {
						t.Errorf("%s was forgotten, and is in %s", key, file)
					}
				}
			}
		})
	}
}

func words(as func(string) string, list []string) (all []string) {
	for _, word := range list {
		all = append(all, as(word))
	}
	return all
}

// none wants no canary in a text, but for those allowed, which stand for all that
// begin so.
func none(t *testing.T, where, text string, allowed ...string) {
	t.Helper()
	for _, word := range allowed {
		text = strings.ReplaceAll(text, word, "")
	}
	for _, secret := range []string{"CANARY", canarySecret, canaryToken, canaryHeader} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("in %s: %q", where, text[max(0, i-100):min(len(text), i+60)])
		}
	}
}

// canaryApp fails for one event, and answers all others, with canaries either way.
func canaryApp(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a broken one is the test's own
	as, status, says := canary, http.StatusOK, canary("ANSWER")
	if strings.Contains(string(body), "evt_failed") {
		// The app repeats the request's credentials, as an error page may.
		as, status = failing, http.StatusInternalServerError
		says = failing("ERROR") + r.Header.Get("Authorization") + r.Header.Get("Cookie") + r.Header.Get("X-Api-Key")
	}
	w.Header().Set("Set-Cookie", as("SET-COOKIE"))
	w.Header().Set("X-App", as("APP-HEADER"))
	w.Header().Set("Link", as("LINK"))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, says) // who asked may be gone
}

// sendCanaries sends all that may come: what is claimed, failed, refused, and passed
// on. Four deliveries have an event key.
func (s *served) sendCanaries(t *testing.T, app string) {
	t.Helper()
	send := func(want int, req *http.Request) {
		t.Helper()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("%s: status %d, want %d", req.URL, resp.StatusCode, want)
		}
	}
	event := func(key string, as func(string) string, secret string) *http.Request {
		return full(s.url, fmt.Sprintf(`{"id":%q,"type":"invoice.paid","order":%q,%q:1,"card":%q}`, key, as("TAG"), as("JSONKEY"), as("BODY")), as, secret)
	}
	send(200, event("evt_kept", canary, canarySecret))
	send(200, event("evt_kept", canary, canarySecret))
	send(500, event("evt_failed", failing, canarySecret))
	send(401, event("evt_forged", canary, "another"))
	send(401, full(s.url, `{"id":`, canary, canary("SIGNATURE")))
	send(400, full(s.url, `{"id":"evt_1","`+canary("JSONKEY"), canary, canarySecret)) // malformed
	send(422, full(s.url, `{"`+canary("JSONKEY")+`":1}`, canary, canarySecret))       // no key
	form := full(s.url, "id=evt_form&note="+canary("FORM"), canary, canarySecret)
	form.URL.Path = "/form"
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	send(200, form)
	page := full(s.url, canary("BODY"), canary, "")
	page.URL.Path = "/reset/" + canary("PATH")
	send(200, page)
}

// full is a delivery with a canary in every place.
func full(host, body string, as func(string) string, secret string) *http.Request {
	req := stripeRequest(host, body, secret)
	req.URL.RawQuery = "token=" + as("QUERY")
	for name, value := range map[string]string{
		"Cookie": "s=" + as("COOKIE"), "Authorization": "Bearer " + as("AUTHORIZATION"), "X-Api-Key": as("REDACTED"),
		"X-Plain": as("HEADER"), "User-Agent": as("AGENT"), "X-Trace": as("TRACE"),
		"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "x=" + as("STATE"),
	} {
		req.Header.Set(name, value)
	}
	return req
}

// stripeRequest is a delivery to a host's webhook, as Stripe signs it.
func stripeRequest(host, body, secret string) *http.Request {
	at := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at, body)
	req := httptest.NewRequest(http.MethodPost, (&url.URL{Scheme: "http", Host: host, Path: "/stripe/webhook"}).String(), strings.NewReader(body))
	req.RequestURI = "" // it is a client's
	req.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))))
	return req
}

// decideAll decides what is open, and forgets all events.
func (s *served) decideAll(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"done", "evt_failed", "--reason", "it is in the books"}, {"forget", "evt_failed", "--reason", "asked to"},
		{"forget", "evt_kept", "--reason", "asked to"}, {"forget", "evt_form", "--reason", "asked to"},
	} {
		if code, out, errs := runHere(t, s.env, append(append([]string{"claims"}, args...), "--config", s.file)...); code != 0 {
			t.Fatalf("%v: %d %s %s", args, code, out, errs)
		}
	}
}

// evidenced waits until evidence stands for so many deliveries.
func (s *served) evidenced(t *testing.T, deliveries int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		code, out, _ := runHere(t, s.env, "stats", "--json", "--config", s.file)
		sum := 0
		for _, part := range strings.Split(out, `"deliveries":`)[1:] {
			n := 0
			if _, err := fmt.Sscanf(part, "%d", &n); err == nil {
				sum += n
			}
		}
		if code == 0 && sum == deliveries {
			return
		}
	}
	t.Fatalf("there is no evidence of %d deliveries", deliveries)
}
