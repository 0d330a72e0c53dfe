package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
)

// TestWitness asks a witness over HTTP after an attempt that ended unknown.
func TestWitness(t *testing.T) {
	const body = `{"id":"evt_1"}`
	newWitnessed := func(t *testing.T, says *atomic.Int32, more string) *rig {
		teller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/effects/evt_1" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			w.WriteHeader(int(says.Load()))
		}))
		t.Cleanup(teller.Close)
		r := newRig(t, newApp(t), newMem(), acmeRoute(jsonID+`
wait: 0s
on_unknown: witness
witness_answer: {status: 202, body: "it is done"}
witness:
  - when: {json: /id, in: [evt_1]}
    with: {event: {json: /id}}
    http: `+teller.URL+`/effects/{event}
`+more))
		r.app.say(500, "an exception after the commit?")
		return r
	}

	t.Run("yes", func(t *testing.T) {
		var says atomic.Int32
		says.Store(204)
		r := newWitnessed(t, &says, "")
		r.expect(r.acme(body), 500, "failed")
		eventually(t, func() bool { return r.send(r.acme(body)).status == 202 })
		if a := r.expect(r.acme(body), 202, "replay"); a.body != "it is done" {
			t.Errorf("answered %q", a.body)
		}
		r.hits(1)
	})
	t.Run("no", func(t *testing.T) {
		var says atomic.Int32
		says.Store(404)
		r := newWitnessed(t, &says, "")
		r.expect(r.acme(body), 500, "failed")
		r.app.say(200, "done")
		eventually(t, func() bool { return r.send(r.acme(body)).status == 200 })
		r.hits(2)
	})
	t.Run("it can't tell, and then it can", func(t *testing.T) {
		var says atomic.Int32
		says.Store(500)
		r := newWitnessed(t, &says, "")
		r.expect(r.acme(body), 500, "failed")
		r.expect(r.acme(body), 503, "settling")
		says.Store(200)
		eventually(t, func() bool { return r.send(r.acme(body)).status == 202 })
		r.hits(1)
	})
	t.Run("no rule is for it", func(t *testing.T) {
		var says atomic.Int32
		r := newWitnessed(t, &says, "")
		const other = `{"id":"evt_2"}`
		r.expect(r.acme(other), 500, "failed")
		eventually(t, func() bool { return r.send(r.acme(other)).result == "held" })
		r.hits(1)
	})
	t.Run("otherwise retry", func(t *testing.T) {
		var says atomic.Int32
		r := newWitnessed(t, &says, "  - otherwise: retry\n")
		const other = `{"id":"evt_2"}`
		r.expect(r.acme(other), 500, "failed")
		r.app.say(200, "done")
		eventually(t, func() bool { return r.send(r.acme(other)).status == 200 })
		r.hits(2)
	})
	t.Run("after a reload", func(t *testing.T) {
		var says atomic.Int32
		says.Store(200)
		r := newWitnessed(t, &says, "")
		before := r.handler.Witnessed()["acme"]
		if err := r.handler.Reload(r.load("namespace: shop\n" + acmeRoute(jsonID+"\non_unknown: witness\nwitness: {with: {e: {json: /id}}, http: \"http://127.0.0.1:1/{e}\"}"))); err != nil {
			t.Fatal(err)
		}
		if after := r.handler.Witnessed()["acme"]; after == nil || after.Witness == before.Witness {
			t.Error("the new rules are not asked")
		}
		if err := r.handler.Reload(r.load("namespace: shop\n" + acmeRoute(jsonID))); err != nil {
			t.Fatal(err)
		}
		if len(r.handler.Witnessed()) != 0 {
			t.Error("a witness is asked that the route does not have any more")
		}
	})
}

// TestWitnessOfBatch: an app that fell in the middle of a batch has done its first
// event and not its second, and a witness is asked about each.
func TestWitnessOfBatch(t *testing.T) {
	for _, batch := range []string{"whole", "split"} {
		t.Run("B13 the effect of one event is none of the other's, "+batch, func(t *testing.T) {
			teller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/effects/e1" {
					w.WriteHeader(404)
				}
			}))
			t.Cleanup(teller.Close)
			r := newRig(t, newApp(t), newMem(), acmeRoute(`
key: [{json: /id}]
each: /events
wait: 0s
on_unknown: witness
witness: {with: {event: {json: /events/0/id}}, http: "`+teller.URL+`/effects/{event}"}
batch: `+batch))
			r.app.say(500, "an exception after the first")
			r.expect(r.acme(eventsOf("e1", "e2")), 500, "failed")
			r.app.say(200, "done")
			eventually(t, func() bool { return r.send(r.acme(eventsOf("e2", "e1"))).status == 200 })
			r.hits(2)
			if got := idsIn(t, r.app.last(t).body); !slices.Contains(got, "e2") || batch == "split" && len(got) != 1 {
				t.Errorf("the app got %v after the failure", got)
			}
			r.expect(r.acme(eventsOf("e1", "e2")), 200, "replay")
		})
	}
}
