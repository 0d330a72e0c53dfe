package proxy_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
)

// B25: an operator cuts an attempt that hangs, and its app ends with its connection:
// that is closed before the event is run again.
func TestCutAttempt(t *testing.T) {
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		r := newRig(t, newApp(t), open(t), acmeRoute(jsonID+"\nlease: 2s\nwait: 30s"))
		var running, most atomic.Int64
		var hung atomic.Bool
		r.app.answer(func(w http.ResponseWriter, req *http.Request) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			if !hung.Swap(true) {
				select {
				case <-req.Context().Done():
				case <-time.After(20 * time.Second): // it was not cut
				}
			}
		})
		first := r.later(r.acme(`{"id":"evt_1"}`))
		eventually(t, func() bool { return running.Load() == 1 })
		eventually(t, func() bool { return r.claim("acme").RunsUntil <= 0 }) // it was renewed
		second := r.later(r.acme(`{"id":"evt_1"}`))
		word := lock.Word{Verb: lock.VerbRelease, Key: r.claim("acme").Key, Who: "alice", Why: "hangs", Retention: time.Hour}
		told := []lock.Told{{Err: lock.ErrStale}}
		for told[0].Err != nil { // a renewal may come between
			word.Version = r.claim("acme").Version
			told = lock.Decide(t.Context(), r.store, []lock.Word{word})
		}
		if s := <-second; s.err != nil || s.status != 200 || s.result != "fresh" {
			t.Errorf("the second got %d %s, %v", s.status, s.result, s.err)
		}
		if got := r.app.last(t).header.Get("Oncegate-Attempt"); got != "2" {
			t.Errorf("attempt %s", got)
		}
		if s := <-first; s.err != nil || s.status != 200 {
			t.Errorf("the first got %d %s, %v", s.status, s.result, s.err)
		}
		if n := most.Load(); n != 1 {
			t.Errorf("%d ran at once", n)
		}
	})
}
