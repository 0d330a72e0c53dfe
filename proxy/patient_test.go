package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	t.Run("B43 an answer that pauses is not cut short", func(t *testing.T) {
		const soon = 500 * time.Millisecond
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nmax_answer: 1KiB"))
		r.handler.SetTimes(time.Minute, soon)
		r.handler.SetPageTime(soon)
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", 8<<10))
			http.NewResponseController(w).Flush()
			time.Sleep(3 * soon) // past the deadline of what was written
		})
		sent := map[string]<-chan answered{}
		for _, req := range []*http.Request{r.acme(`{"id":"evt_1"}`), r.post("/page", "")} {
			sent[req.URL.Path] = r.later(req)
		}
		for path, c := range sent {
			if s := <-c; s.err != nil || len(s.body) != 8<<10 {
				t.Errorf("%s: %d bytes and %v", path, len(s.body), s.err)
			}
		}
	})
	for what, path := range map[string]string{"a page": "/page", "what is observed": "/hooks/acme"} {
		t.Run("who takes nothing of "+what+" lets the app go", func(t *testing.T) {
			r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nmode: observe"))
			r.handler.SetPageTime(50 * time.Millisecond)
			ended := make(chan error, 1)
			r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
				_, err := io.Copy(w, zeros{})
				ended <- err
			})
			c := r.dial()
			c.say("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Error("the app is still writing")
			}
		})
	}
}
