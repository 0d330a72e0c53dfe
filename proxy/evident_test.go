package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

// What the app said to an attempt is evidence: its headers as a claim keeps them,
// and the first of its body where it may be kept.
func TestAppAnswersInEvidence(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	answers := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			for name, value := range map[string]string{
				"Content-Type": "text/plain", "Location": "/login?" + r.Header.Get("Authorization"), "Set-Cookie": "CANARY-1", "X-Debug": "CANARY-2",
			} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name, record, kept string
		answer             func(http.ResponseWriter, *http.Request)
		size               int
	}{
		{name: "a 2xx", record: "none", answer: answers(200, "thanks"), kept: "thanks", size: 6},
		{name: "a large 2xx", record: "none", answer: answers(200, long), kept: long[:4096], size: 10 << 10},
		{name: "a failure", record: "none", answer: answers(500, "oops"), size: 4},
		{name: "a failure, of a route that keeps heads", record: "headers", answer: answers(500, "oops"), size: 4},
		{name: "a failure, of a route that keeps requests", record: "unsettled", answer: answers(500, "oops"), kept: "oops", size: 4},
		{name: "a large failure", record: "full", answer: answers(404, long), kept: long[:4096], size: 10 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nrecord: "+c.record))
			r.app.answer(c.answer)
			r.send(r.acme(`{"id":"evt_1"}`, "Authorization", "Bearer CANARY-TOKEN"))
			var e evidence.Entry
			for _, e = range r.kept.find(t, 1) {
			}
			a := e.Answer
			if a == nil || string(a.Body) != c.kept || a.Kept != len(c.kept) || a.Size != c.size {
				t.Fatalf("kept %+v", a)
			}
			lines := []evidence.Line{{Name: "Content-Type", Value: "text/plain"}, {Name: "Location", Value: "/login?[redacted]"}}
			if !slices.Equal(a.Header, lines) {
				t.Errorf("kept the headers %v", a.Header)
			}
		})
	}
	t.Run("an answer beyond max_answer, and one that breaks off, have no body", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nrecord: full\nmax_answer: 1KiB"))
		r.app.answer(answers(200, long))
		r.send(r.acme(`{"id":"evt_1"}`))
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		r.send(r.acme(`{"id":"evt_2"}`))
		for result, e := range r.kept.find(t, 2) {
			if e.Answer == nil || e.Answer.Body != nil {
				t.Errorf("%s: kept %+v", result, e.Answer)
			}
		}
	})
	t.Run("B38 credentials that the app puts into its answer are not kept", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nrecord: full\nredact: [X-Api-Key]"))
		r.app.answer(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			for _, pad := range []int{0, 4096 - 7} { // in the middle, and across the end of what is kept
				_, _ = io.WriteString(w, strings.Repeat("x", pad))
				for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
					_, _ = io.WriteString(w, name+": "+r.Header.Get(name)+"\n")
				}
			}
			_, _ = io.WriteString(w, "session=CANARY-SESSION, token=CANARY-BEARER")
		})
		r.send(r.acme(`{"id":"evt_1"}`, "Authorization", "Bearer CANARY-BEARER", "Cookie", "a=b; session=CANARY-SESSION", "X-Api-Key", "CANARY-KEY"))
		for _, e := range r.kept.find(t, 1) {
			if bytes.Contains(e.Answer.Body, []byte("CANARY")) || !bytes.Contains(e.Answer.Body, []byte("Authorization: [redacted]")) {
				t.Errorf("kept %q", e.Answer.Body)
			}
		}
	})
	t.Run("B38 nor is the token that the route is verified by, in the answer or in the request", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "routes: {gitlab: {path: /hooks/gitlab, secrets: CANARY-TOKEN, verify: {token: true, header: X-Gitlab-Token}, key: {json: /id}, record: full, app_limit: 0s}}")
		send := func(id string) {
			r.send(r.post("/hooks/gitlab", `{"id":"`+id+`"}`, "X-Gitlab-Token", "CANARY-TOKEN"))
		}
		r.app.answer(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "X-Gitlab-Token: "+r.Header.Get("X-Gitlab-Token"))
		})
		send("evt_1")
		for _, e := range r.kept.find(t, 1) {
			if string(e.Answer.Body) != "X-Gitlab-Token: [redacted]" {
				t.Errorf("kept %q", e.Answer.Body)
			}
		}
		r.app.answer(nil)
		send("evt_2")
		records, err := r.store.Read(t.Context(), []lock.Key{lock.KeyOf("shop", "gitlab", "evt_2")})
		if err != nil {
			t.Fatal(err)
		}
		request, err := lock.Unseal(records[0].Request)
		if err != nil || len(request) == 0 || bytes.Contains(request, []byte("CANARY")) {
			t.Errorf("kept %q, %v", request, err)
		}
	})
	t.Run("B38 nor is the key by which a caller is known", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "routes: {orders: {path: /orders, provider: idempotency-key, caller: {first: [{header: x-api-key}, {header: X-Tenant, as: text}]}, record: full}}")
		r.app.answer(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "you are "+r.Header.Get("X-Api-Key"))
		})
		r.expect(r.post("/orders", "{}", "X-Api-Key", "CANARY-KEY", "X-Tenant", "shop-1", "Idempotency-Key", "k"), 200, "fresh")
		if text := r.kept.text(t); strings.Contains(text, "CANARY") {
			t.Errorf("in evidence: %s", text)
		}
		request, err := lock.Unseal(r.claim("orders").Request)
		if err != nil || bytes.Contains(request, []byte("CANARY")) || !bytes.Contains(request, []byte("shop-1")) {
			t.Errorf("kept %q, %v", request, err)
		}
	})
	t.Run("headers are bounded", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				w.Header().Add("Link", strings.Repeat("l", 1000))
			}
		})
		r.send(r.acme(`{"id":"evt_1"}`))
		for _, e := range r.kept.find(t, 1) {
			if n := len(e.Answer.Header); n == 0 || n > 4 {
				t.Errorf("%d lines of a kilobyte are kept", n)
			}
		}
	})
}
