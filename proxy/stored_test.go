package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"oncegate/lock"
)

func TestReplayedHeaders(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		t.Run("B38 what belongs to one exchange is given once", func(t *testing.T) {
			const canary = "CANARY"
			once := []string{
				"Set-Cookie: laravel_session=" + canary, "Set-Cookie: XSRF-TOKEN=" + canary, "WWW-Authenticate: Basic " + canary,
				"Authorization: Bearer " + canary, "Age: 7", "X-Request-Id: " + canary,
				"X-RateLimit-Remaining: " + canary, "Traceparent: " + canary, "Server: " + canary, "X-Powered-By: " + canary,
				"Date: Thu, 01 Jan 1970 00:00:00 GMT", "Idempotent-Replayed: " + canary, "Retry-After: 7",
			}
			kept := []string{"Location: /orders/1", "Etag: \"v1\"", "Content-Type: text/x-odd; charset=latin1", "Content-Language: de", "Vary: Accept", "Cache-Control: private"}
			answer := "HTTP/1.1 201 Created\r\n" + strings.Join(append(slices.Clone(once), kept...), "\r\n") +
				"\r\nConnection: X-A\r\nX-A: " + canary + "\r\nContent-Length: 2\r\n\r\nok"
			raw := newRawApp(t, always(answer))
			r := startRig(t, raw.url, open(t), "namespace: shop\n"+acmeRoute(jsonID))
			first := r.expect(r.acme(`{"id":"evt_1"}`), 201, "fresh")
			second := r.expect(r.acme(`{"id":"evt_1"}`), 201, "replay")
			for _, line := range append(slices.Clone(once), kept...) {
				name, value, _ := strings.Cut(line, ": ")
				name = http.CanonicalHeaderKey(name)
				if !slices.Contains(first.header[name], value) {
					t.Errorf("the first answer lacks %s: %q", line, first.header[name])
				}
				if got := slices.Contains(second.header[name], value); got != slices.Contains(kept, line) {
					t.Errorf("replayed is %s: %q", name, second.header[name])
				}
			}
			if first.header["X-A"] != nil || first.header["Connection"] != nil {
				t.Errorf("hop-by-hop headers got through: %v", first.header)
			}
			if d := second.header["Date"]; len(d) != 1 || strings.Contains(d[0], "1970") {
				t.Errorf("the replay's Date is %q", d)
			}
			claim := r.claim("acme")
			whole, err := r.store.Read(context.Background(), []lock.Key{claim.Key})
			if err != nil || bytes.Contains(slices.Concat(whole[0].AnswerHeader, whole[0].AnswerBody, whole[0].Request), []byte(canary)) {
				t.Errorf("the store holds what must not be stored (%v)", err)
			}
			names := map[string]bool{}
			for name := range second.header {
				names[name] = true
			}
			for _, line := range kept {
				name, _, _ := strings.Cut(line, ": ")
				delete(names, name)
			}
			for _, name := range []string{"Date", "Content-Length", "Idempotent-Replayed", "Oncegate-Result"} {
				delete(names, name)
			}
			if len(names) > 0 {
				t.Errorf("replayed besides: %v", names)
			}
		})
	})
}

func TestReplayedBodies(t *testing.T) {
	random := make([]byte, 1<<20)
	rand.Read(random)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "hello")
	z.Close()
	type answer struct {
		name   string
		status int
		header []string
		body   string
	}
	answers := []answer{
		{"nothing", 200, nil, ""},
		{"a random mebibyte", 200, []string{"Content-Type", "application/octet-stream"}, string(random)},
		{"odd JSON", 200, []string{"Content-Type", "application/json"}, `{"b":1, "a":1.0,  "a":2}` + "\n"},
		{"gzip", 200, []string{"Content-Encoding", "gzip"}, packed.String()},
		{"no content type", 200, nil, "<html>"},
		{"201", 201, []string{"Location", "/x"}, "made"},
		{"202", 202, nil, "later"},
		{"204", 204, nil, ""},
		{"206", 206, []string{"Content-Range", "bytes 0-3/10"}, "part"},
		{"299", 299, nil, "odd"},
	}
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		for _, a := range answers {
			for _, chunked := range []bool{false, true} {
				t.Run(fmt.Sprintf("B39 %s, chunked %v", a.name, chunked), func(t *testing.T) {
					var raw strings.Builder
					fmt.Fprintf(&raw, "HTTP/1.1 %d Custom Reason\r\n", a.status)
					for i := 0; i < len(a.header); i += 2 {
						fmt.Fprintf(&raw, "%s: %s\r\n", a.header[i], a.header[i+1])
					}
					switch {
					case a.status == 204:
						raw.WriteString("\r\n")
					case chunked:
						raw.WriteString("Transfer-Encoding: chunked\r\n\r\n")
						for part := range slices.Chunk([]byte(a.body), 1000) {
							fmt.Fprintf(&raw, "%x\r\n%s\r\n", len(part), part)
						}
						raw.WriteString("0\r\n\r\n")
					default:
						fmt.Fprintf(&raw, "Content-Length: %d\r\n\r\n%s", len(a.body), a.body)
					}
					app := newRawApp(t, always(raw.String()))
					r := startRig(t, app.url, open(t), "namespace: shop\n"+acmeRoute(jsonID+"\nmax_answer: 2MiB"))
					for _, result := range []string{"fresh", "replay", "replay"} {
						s := r.expect(r.acme(`{"id":"evt_1"}`), a.status, result)
						if s.body != a.body {
							t.Errorf("%s: %d bytes, want %d", result, len(s.body), len(a.body))
						}
						if ct := s.header["Content-Type"]; a.header == nil && ct != nil {
							t.Errorf("%s: a Content-Type was invented: %q", result, ct)
						}
						for i := 0; i < len(a.header); i += 2 {
							if got := s.header[a.header[i]]; len(got) != 1 || got[0] != a.header[i+1] {
								t.Errorf("%s: %s is %q", result, a.header[i], got)
							}
						}
					}
					if app.count() != 1 {
						t.Errorf("%d requests reached the app", app.count())
					}
				})
			}
		}
	})
}

func TestLargeAnswers(t *testing.T) {
	const most = 64 << 10
	serve := func(size int64, broken bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/x")
			w.Header().Set("Content-Encoding", "x-odd")
			w.Header().Set("Content-Digest", "sha-256=:odd:")
			w.Header().Set("Content-MD5", "odd")
			w.WriteHeader(201)
			io.CopyN(w, zeros{}, size)
			if broken {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
	}
	route := acmeRoute(jsonID + "\nmax_answer: 64KiB")
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		for _, size := range []int64{most, most + 1, 50 << 20} {
			t.Run(fmt.Sprintf("B41 %d bytes", size), func(t *testing.T) {
				r := newRig(t, newApp(t), open(t), route)
				r.app.answer(serve(size, false))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				resp, err := sender.RoundTrip(r.acme(`{"id":"evt_1"}`))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil || resp.StatusCode != 201 || resp.Header.Get("Oncegate-Result") != "fresh" {
					t.Errorf("the first got %d bytes, %v, %d", n, err, resp.StatusCode)
				}
				runtime.ReadMemStats(&after)
				if grown := int64(after.TotalAlloc) - int64(before.TotalAlloc); grown > 8<<20 {
					t.Errorf("%d MiB were allocated on the way", grown>>20)
				}
				s := r.expect(r.acme(`{"id":"evt_1"}`), 201, "replay")
				stub := size > most
				if got := s.header.Get("Oncegate-Answer"); (got == "stub") != stub {
					t.Errorf("Oncegate-Answer is %q", got)
				}
				if want := map[bool]int{false: int(size), true: 0}[stub]; len(s.body) != want {
					t.Errorf("replayed are %d bytes, want %d", len(s.body), want)
				}
				for _, name := range []string{"Content-Encoding", "Content-Digest", "Content-Md5"} {
					if s.header.Get("Content-Type") != "text/x" || stub == (s.header.Get(name) != "") {
						t.Errorf("replayed is %v", s.header)
					}
				}
				r.hits(1)
			})
		}
		t.Run("B41 of a batch the first event alone keeps a large answer", func(t *testing.T) {
			ids := make([]string, 17<<20/most)
			for i := range ids {
				ids[i] = fmt.Sprintf(`{"id":"evt_%d"}`, i)
			}
			r := newRig(t, newApp(t), open(t), acmeRoute("each: /items\nkey: {json: /id}\nmax_answer: 64KiB"))
			r.app.answer(serve(most, false))
			batch := func(ids ...string) *http.Request { return r.acme(`{"items":[` + strings.Join(ids, ",") + `]}`) }
			r.expect(batch(ids...), 201, "fresh")
			if s := r.expect(batch(ids...), 201, "replay"); len(s.body) != most || s.header.Get("Content-Encoding") != "x-odd" {
				t.Errorf("replayed are %d bytes, %v", len(s.body), s.header)
			}
			s := r.expect(batch(ids[1:]...), 201, "replay")
			if len(s.body) != 0 || s.header.Get("Oncegate-Answer") != "stub" || s.header.Get("Content-Encoding") != "" {
				t.Errorf("replayed to another batch are %d bytes, %v", len(s.body), s.header)
			}
			r.hits(1)
		})
		t.Run("B41 the sender leaves in the middle: the app is heard to the end", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), route)
			ended := make(chan error, 1)
			r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
				_, err := io.CopyN(w, zeros{}, 50<<20)
				ended <- err
			})
			req := r.acme(`{"id":"evt_1"}`)
			ctx, cancel := context.WithCancel(req.Context())
			resp, err := sender.RoundTrip(req.WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			io.CopyN(io.Discard, resp.Body, most)
			cancel()
			resp.Body.Close()
			if err := <-ended; err != nil {
				t.Errorf("the app: %v", err)
			}
			r.inHand(0)
			r.expect(r.acme(`{"id":"evt_1"}`), 200, "replay")
			r.hits(1)
		})
		t.Run("B43 the app breaks off after it is settled: the sender sees it, the event is done", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), route)
			r.app.answer(serve(10<<20, true))
			if s := r.send(r.acme(`{"id":"evt_1"}`)); s.err == nil {
				t.Errorf("the sender took %d bytes for all", len(s.body))
			}
			if s := r.expect(r.acme(`{"id":"evt_1"}`), 201, "replay"); s.header.Get("Oncegate-Answer") != "stub" {
				t.Error("no stub")
			}
			r.hits(1)
			eventually(t, func() bool { return strings.Contains(r.log.String(), `"error":"broken"`) })
		})
		t.Run("a large failure streams too, and is not kept", func(t *testing.T) {
			r := newRig(t, newApp(t), open(t), route)
			r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(503)
				io.CopyN(w, zeros{}, 1<<20)
			})
			if s := r.expect(r.acme(`{"id":"evt_1"}`), 503, "failed"); len(s.body) != 1<<20 {
				t.Errorf("got %d bytes", len(s.body))
			}
			if c := r.claim("acme"); c.State != lock.StateReleased {
				t.Errorf("the claim is %s", c.State)
			}
		})
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
