package proxy_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Nothing out of a request or an answer gets into log, metrics or evidence, but
// for event keys, and in evidence what a claim keeps of a 2xx.
func TestNothingIsSaid(t *testing.T) {
	const canary = "CANARY"
	body := func(id string) string { return `{"id":` + id + `,"card":"` + canary + `"}` }
	header := func(more ...string) []string {
		return append(more, "Cookie", "s="+canary, "Authorization", "Bearer "+canary, "X-Api-Key", canary, "User-Agent", canary,
			"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "x="+canary, "Oncegate-Event", canary)
	}
	leak := func(t *testing.T, r *rig) {
		t.Helper()
		r.inHand(0)
		for _, secret := range []string{canary, secret} {
			for name, text := range map[string]string{"log": r.log.String(), "scrape": r.scrape(), "evidence": r.kept.text(t)} {
				if i := strings.Index(text, secret); i >= 0 {
					t.Errorf("in the %s: %s", name, text[max(0, i-200):min(len(text), i+100)])
				}
			}
		}
	}
	t.Run("on a route", func(t *testing.T) {
		s := &faulty{store: newMem()}
		r := newRig(t, newApp(t), s, "store_timeout: 200ms\nmax_body: 4KiB\nmax_answer: 1KiB\n"+acmeRoute(jsonID+"\non_mismatch: refuse\nupstream_timeout: 200ms\nwait: 50ms\nhandshakes: [{name: h, when: {json: /hello, present: true}}]"))
		send := func(status int, b string, more ...string) {
			t.Helper()
			if a := r.send(r.post("/hooks/acme?token="+canary, b, header(more...)...)); a.status != status {
				t.Errorf("got %d %q, want %d", a.status, a.result, status)
			}
		}
		sig := func(b string) []string { return []string{"X-Sig", mac(secret, b)} }
		good := func(status int, b string, more ...string) { t.Helper(); send(status, b, append(more, sig(b)...)...) }
		good(200, body(`"evt_1"`))
		good(200, body(`"evt_1"`))
		good(409, body(`"evt_1"`)+" ")
		good(422, body(`null`))
		good(400, body(`"evt_2"`)+canary)
		good(400, `{"`+canary+`":`)
		good(400, body(`"evt_2"`), "Connection", "X-Sig, "+canary)
		good(413, strings.Repeat(canary, 4096))
		good(200, `{"hello":"`+canary+`"}`)
		send(401, body(`"evt_3"`))
		send(401, body(`"evt_3"`), "X-Sig", canary)
		send(401, body(`"evt_3"`), "X-Sig", mac(canary, ""))
		for _, answer := range []http.HandlerFunc{
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); io.WriteString(w, canary) },
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Set-Cookie", canary)
				io.WriteString(w, canary)
			},
		} {
			r.app.answer(answer)
			r.send(r.post("/hooks/acme", body(`"evt_4"`), header(sig(body(`"evt_4"`))...)...))
		}
		r.app.answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		good(504, body(`"evt_5"`))
		r.app.answer(nil)
		s.fail(refused)
		good(503, body(`"evt_6"`))
		s.fail(nil)
		ctx, leave := context.WithCancel(t.Context())
		arrived, release := r.app.hold(t)
		c := r.later(r.post("/hooks/acme", body(`"evt_7"`), header(sig(body(`"evt_7"`))...)...).WithContext(ctx))
		<-arrived
		leave()
		<-c
		release()
		put := r.post("/hooks/acme", "x", header()...)
		put.Method = canary
		r.send(put)
		leak(t, r)
	})
	for _, answer := range []string{
		canary + "\r\n\r\n", "HTTP/1.1 " + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\nSet-Cookie : " + canary + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n0\r\n" + canary + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: " + canary + "\r\n\r\n", "HTTP/" + canary + " 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n " + canary + "\r\n\r\n",
	} {
		t.Run("of an app that says "+strings.ReplaceAll(answer, "\r\n", " "), func(t *testing.T) {
			raw := newRawApp(t, func(c *wire) { c.request(); c.say(answer) })
			r := startRig(t, raw.url, newMem(), "namespace: shop\n"+acmeRoute(jsonID))
			if a := r.send(r.acme(body(`"evt_1"`), header()...)); a.status != 502 && a.status != 200 {
				t.Errorf("got %d %q", a.status, a.result)
			}
			r.send(r.post("/pass/"+canary, body(`"evt_1"`), header()...))
			leak(t, r)
		})
	}
	t.Run("passing through", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
		r.send(r.post("/reset/"+canary+"?token="+canary, body(`"evt_1"`), header()...))
		r.app.Close()
		r.send(r.post("/reset/"+canary+"?token="+canary, body(`"evt_1"`), header()...))
		leak(t, r)
	})
	t.Run("on an observed route", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nmode: observe"))
		for _, b := range []string{body(`"evt_1"`), body(`{}`), "{" + canary} {
			r.send(r.post("/hooks/acme", b, header("X-Sig", mac(secret, b))...))
			r.send(r.post("/hooks/acme", b, header("X-Sig", canary)...))
		}
		leak(t, r)
	})
}
