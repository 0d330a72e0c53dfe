package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oncegate/internal/forward"
	"oncegate/lock"
)

// A replica whose store is out of its reach loses its lease, another takes over,
// and then the first's app answers.
func TestFenced(t *testing.T) {
	const body = `{"id":"evt_1"}`
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		type world struct {
			one, other           *rig
			first, second        <-chan answered
			answerOne, answerTwo chan http.HandlerFunc
			reachable            *faulty
		}
		start := func(t *testing.T) *world {
			s := open(t)
			w := &world{reachable: &faulty{store: s}, answerOne: make(chan http.HandlerFunc), answerTwo: make(chan http.HandlerFunc)}
			a := newApp(t)
			yaml := "store_timeout: 300ms\n" + acmeRoute(jsonID+"\nlease: 1s\nwait: 4s")
			w.one, w.other = newRig(t, a, w.reachable, yaml), newRig(t, a, s, yaml)
			arrived := make(chan bool)
			a.answer(func(rw http.ResponseWriter, r *http.Request) {
				arrived <- true
				answer := w.answerOne
				if r.Header.Get("Oncegate-Attempt") == "2" {
					answer = w.answerTwo
				}
				(<-answer)(rw, r)
			})
			w.first = w.one.later(w.one.acme(body))
			<-arrived
			w.reachable.fail(refused)
			w.second = w.other.later(w.other.acme(body))
			<-arrived // when the lease has lapsed
			w.reachable.fail(nil)
			return w
		}
		say := func(status int, text string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); fmt.Fprint(w, text) }
		}
		check := func(t *testing.T, got answered, want string) {
			t.Helper()
			status, rest, _ := strings.Cut(want, " ")
			result, text, _ := strings.Cut(rest, " ")
			if fmt.Sprint(got.status) != status || !is(got.result, result) || got.body != text {
				t.Errorf("got %d %s %q %v, want %s", got.status, got.result, got.body, got.err, want)
			}
		}
		t.Run("B26 a failure that comes too late changes nothing, and its sender gets the other's answer", func(t *testing.T) {
			w := start(t)
			w.answerTwo <- say(200, "two")
			check(t, <-w.second, "200 fresh two")
			before := w.other.claim("acme")
			w.answerOne <- say(500, "one")
			check(t, <-w.first, "200 replay two")
			if after := w.other.claim("acme"); after.Version != before.Version {
				t.Errorf("the claim was changed: it is %s", after.State)
			}
			w.one.hits(2)
			if n := w.one.counts(`oncegate_fenced_writes_total{scope="acme"}`); n == "0" {
				t.Error("no fenced write was counted")
			}
		})
		t.Run("B26 while the other still runs, it waits as a duplicate and runs nothing", func(t *testing.T) {
			w := start(t)
			w.answerOne <- say(503, "one")
			w.one.inHand(1)
			w.answerTwo <- say(200, "two")
			check(t, <-w.second, "200 fresh two")
			check(t, <-w.first, "200 replay two")
			w.one.hits(2)
		})
		t.Run("B26 a duplicate of another's failure does not become an attempt", func(t *testing.T) {
			w := start(t)
			w.answerTwo <- say(503, "two")
			check(t, <-w.second, "503 failed two")
			w.answerOne <- say(503, "one")
			if got := <-w.first; got.status != 503 || got.result == "failed" || got.result == "fresh" {
				t.Errorf("got %d %q %q", got.status, got.result, got.body)
			}
			w.one.hits(2)
			if c := w.other.claim("acme"); c.Attempt != 2 || c.State != lock.StateReleased {
				t.Errorf("the claim is %s, after attempt %d", c.State, c.Attempt)
			}
		})
		t.Run("B26 a 2xx is proof, however late", func(t *testing.T) {
			w := start(t)
			w.answerTwo <- say(503, "two")
			check(t, <-w.second, "503 failed two")
			w.answerOne <- say(200, "one")
			check(t, <-w.first, "200 fresh one")
			check(t, w.other.send(w.other.acme(body)), "200 replay one")
			if c := w.other.claim("acme"); c.State != lock.StateDone || c.Mark&lock.MarkLate == 0 {
				t.Errorf("the claim is %s, marked %b", c.State, c.Mark)
			}
			w.one.hits(2)
		})
	})
}

func TestPanicSettles(t *testing.T) {
	r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID))
	r.handler.WrapApps(func(forward.App) forward.App { return panicking{} })
	if a := r.send(r.acme(`{"id":"evt_1"}`)); a.err == nil {
		t.Errorf("got %d %q", a.status, a.result)
	}
	r.inHand(0)
	if n := r.gate.InHand(); n != 0 {
		t.Errorf("%d attempts are never settled", n)
	}
	if c := r.claim("acme"); c.State != lock.StateUnknown {
		t.Errorf("the claim is %s", c.State)
	}
	r.log.take()
}

type panicking struct{ forward.App }

func (panicking) Forward(context.Context, *forward.Request) (*forward.Answer, error) {
	panic("a fault")
}

func TestAnswersAreInHand(t *testing.T) {
	r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+"\nmax_answer: 10KiB"))
	for length, want := range map[string]int64{"5000": 5000, "90000": 10 << 10, "": 10 << 10} {
		sent, release := make(chan bool), make(chan bool)
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			w.(http.Flusher).Flush()
			sent <- true
			<-release
			panic(http.ErrAbortHandler)
		})
		body := `{"id":"evt_` + length + `"}`
		c := r.later(r.acme(body))
		<-sent
		eventually(t, func() bool { _, bytes := r.handler.InHand(); return bytes >= want+int64(len(body)) })
		if _, bytes := r.handler.InHand(); bytes > want+firstRoom {
			t.Errorf("length %q: %d bytes are in hand", length, bytes)
		}
		release <- true
		<-c
		r.inHand(0)
	}
}

const firstRoom = 8 << 10
